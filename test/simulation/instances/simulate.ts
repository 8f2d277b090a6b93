/** Draws histories from a seed, plays them, and shrinks the first one that breaks a rule. */
import fc from 'fast-check';
import { type History, histories } from './histories.ts';
import { type Defect, play } from './play.ts';

export interface Draw {
  readonly histories: number;
  readonly seed: number;
  /** Of a history that failed before: plays that one alone, shrunk as far as it was. */
  readonly path?: string;
  /** Whether a shorter history is looked for; false when it only matters that there is one. */
  readonly shrinks: boolean;
}

export interface Finding {
  readonly seed: number;
  readonly path: string;
  /** How many histories held before. */
  readonly after: number;
  readonly problem: string;
  readonly history: History | null;
}

/** Null when every history holds. */
export async function simulate(draw: Draw, defect?: Defect): Promise<Finding | null> {
  const { seed, path, shrinks } = draw;
  const property = fc.asyncProperty(histories, (drawn) => play(drawn, defect));
  const run = await fc.check(property, {
    numRuns: draw.histories,
    seed,
    endOnFailure: !shrinks,
    ...(path === undefined ? {} : { path }),
  });
  if (!run.failed) return null;
  const cause = run.errorInstance;
  return {
    seed: run.seed,
    path: run.counterexamplePath ?? '',
    after: run.numRuns - 1,
    problem: cause instanceof Error ? cause.message : String(cause),
    history: run.counterexample?.[0] ?? null,
  };
}

export function describe({ seed, path, after, problem, history }: Finding): string {
  return [
    `After ${after} histories that hold: ${problem}`,
    JSON.stringify(history),
    `Again: npm run simulate -- --instances --seed ${seed} --path ${path}`,
  ].join('\n');
}
