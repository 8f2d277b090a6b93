/** Draws histories from a seed, plays them, and shrinks the first one that breaks a rule. */
import fc from 'fast-check';

export interface Draw {
  readonly histories: number;
  readonly seed: number;
  /** Of a history that failed before: plays that one alone, shrunk as far as it was. */
  readonly path?: string;
  /** Whether a shorter history is looked for; false when it only matters that there is one. */
  readonly shrinks?: boolean;
}

export interface Failure<History> {
  readonly seed: number;
  readonly path: string;
  /** How many histories held before. */
  readonly after: number;
  readonly problem: string;
  readonly history: History | null;
}

/** Null when every history holds. */
export async function firstFailure<History>(
  drawn: fc.Arbitrary<History>,
  { histories, seed, path, shrinks = true }: Draw,
  play: (history: History) => Promise<void>,
): Promise<Failure<History> | null> {
  const run = await fc.check(fc.asyncProperty(drawn, play), {
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
    after: run.numRuns - 1,
    problem: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
    history: run.counterexample?.[0] ?? null,
  };
}
