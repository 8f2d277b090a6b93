/** Draws histories of one kind from a seed, plays them, and shrinks the first one that breaks a rule. */
import fc from 'fast-check';
import { histories } from './instances/histories.ts';
import { type Defect as DefectOfInstances, play as playInstances } from './instances/play.ts';
import { play } from './play.ts';
import type { Defect } from './process.ts';
import { type Clocks, history } from './steps.ts';

export interface Draw {
  readonly histories: number;
  readonly seed: number;
  /** The path of an earlier failure: plays only that history, as far as it was shrunk. */
  readonly path?: string;
  /** Whether to shrink a failing history; false when it only matters that one exists. */
  readonly shrinks?: boolean;
}

/** Histories of one kind. */
export interface Kind<History = unknown> {
  readonly drawn: fc.Arbitrary<History>;
  /** Rejects if the history breaks a rule. */
  play(history: History): Promise<void>;
  /** What selects this kind on the command line. */
  readonly options: string;
}

export interface OfAuthority {
  readonly clocks: Clocks;
  /** A multiplier for how often the authority's key is replaced. */
  readonly successions?: number;
  /** Whether each start continues with a followed state instead of reading it. */
  readonly takesOver?: boolean;
}

/** Histories of one authority. */
export function ofAuthority(of: OfAuthority, defect?: Defect): Kind {
  const { clocks, successions = 1, takesOver = false } = of;
  const often = successions === 1 ? '' : ` --successions ${successions}`;
  return kindOf(
    history(clocks, successions),
    (one) => play(one, defect, takesOver),
    `--clocks ${clocks}${often}${takesOver ? ' --take-overs' : ''}`,
  );
}

/** Histories of three instances. */
export function ofInstances(defect?: DefectOfInstances, drawn = histories): Kind {
  return kindOf(drawn, (one) => playInstances(one, defect), '--instances');
}

function kindOf<History>(
  drawn: fc.Arbitrary<History>,
  play: (history: History) => Promise<void>,
  options: string,
): Kind {
  return { drawn, play: (one) => play(one as History), options };
}

export interface Failure {
  /** How many histories passed before this one failed. */
  readonly after: number;
  readonly problem: string;
  /** The problem, the history, and how to play it again. */
  readonly report: string;
}

/** Returns null if every history passes. */
export async function simulate(
  { drawn, play, options }: Kind,
  { histories, seed, path, shrinks = true }: Draw,
): Promise<Failure | null> {
  const run = await fc.check(fc.asyncProperty(drawn, play), {
    numRuns: histories,
    seed,
    endOnFailure: !shrinks,
    ...(path === undefined ? {} : { path }),
  });
  if (!run.failed) return null;
  const cause = run.errorInstance;
  const problem = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  const after = run.numRuns - 1;
  const report = [
    `After ${after} histories that hold: ${problem}`,
    'The shortest history that was found:',
    ...linesOf(run.counterexample?.[0]),
    `Again: npx tsx test/simulation/main.ts ${options} --seed ${run.seed} --path ${run.counterexamplePath}`,
  ];
  return { after, problem, report: report.join('\n') };
}

/** Each step on a line of its own. */
function linesOf(history: unknown): readonly string[] {
  const { steps = [], ...others } = history as { readonly steps?: readonly unknown[] };
  return [others, ...steps].map((one) => `  ${JSON.stringify(one)}`);
}
