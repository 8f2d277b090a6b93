/** Draws histories from a seed, plays them, and shrinks the first one that breaks a rule. */
import fc from 'fast-check';
import { play } from './play.ts';
import { type Clocks, history as draw, type History } from './steps.ts';
import type { Defect } from './world.ts';

const MAX_STEPS = 60;

export interface Draw {
  readonly histories: number;
  readonly seed: number;
  /** Of a history that failed before: plays that one alone, shrunk as far as it was. */
  readonly path?: string;
  readonly clocks: Clocks;
  /** Whether a shorter history is looked for; false when it only matters that there is one. */
  readonly shrinks?: boolean;
  /** Whether each start goes on with a state that was followed, instead of reading it. */
  readonly takesOver?: boolean;
}

export interface Finding {
  readonly seed: number;
  readonly path: string;
  readonly clocks: Clocks;
  /** How many histories held before. */
  readonly after: number;
  readonly problem: string;
  readonly history: History | null;
}

/** Null when every history holds. */
export async function simulate(
  { histories, seed, path, clocks, shrinks = true, takesOver = false }: Draw,
  defect?: Defect,
): Promise<Finding | null> {
  const property = fc.asyncProperty(draw(MAX_STEPS, clocks), (drawn) =>
    play(drawn, defect, takesOver),
  );
  const run = await fc.check(property, {
    numRuns: histories,
    seed,
    endOnFailure: !shrinks,
    ...(path === undefined ? {} : { path }),
  });
  if (!run.failed) return null;
  const cause = run.errorInstance;
  return {
    seed: run.seed,
    path: run.counterexamplePath ?? '',
    clocks,
    after: run.numRuns - 1,
    problem: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
    history: run.counterexample?.[0] ?? null,
  };
}

export function describe({ seed, path, clocks, after, problem, history }: Finding): string {
  return [
    `After ${after} histories that hold: ${problem}`,
    `The shortest history that was found, with ${history?.enrolled ?? 0} nodes enrolled:`,
    ...(history?.steps ?? []).map((step) => `  ${JSON.stringify(step)}`),
    `Again: npm run simulate -- --clocks ${clocks} --seed ${seed} --path ${path}`,
  ].join('\n');
}
