/** Draws histories from a seed, plays them, and shrinks the first one that breaks a rule. */
import fc from 'fast-check';

export interface Draw {
  readonly histories: number;
  readonly seed: number;
  /** The path of an earlier failure: plays only that history, as far as it was shrunk. */
  readonly path?: string;
  /** Whether to shrink a failing history; false when it only matters that one exists. */
  readonly shrinks?: boolean;
}

export interface Failure<History> {
  readonly seed: number;
  readonly path: string;
  /** How many histories passed before this one failed. */
  readonly after: number;
  readonly problem: string;
  readonly history: History | null;
}

/** Returns null if every history passes. */
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
