/** Rounds of several contestants in turn, so that other load on the machine affects all of them. */
import { compare, lineOf, type Report, rateOf } from './report.ts';
import type { RoundResult } from './rounds.ts';

/** The options of a run. */
export interface Settings {
  readonly seconds: number;
  readonly rounds: number;
  /** Without a number, each benchmark has its own default. */
  readonly connections?: number;
  /** Requests per second of the open loop; without it, the loop is closed. */
  readonly rate?: number;
  readonly nodes?: number;
  /** Readers of events. */
  readonly readers: number;
  /** The length of a run that watches memory. */
  readonly minutes: number;
  /** The folder of a large network; without it, the bench makes one. */
  readonly dataDir?: string;
  /** Threads of the authority that serve HTTP. */
  readonly threads: number;
  readonly cpuProf?: string;
  /** Another checkout with its own build, to be measured along with this one. */
  readonly against?: string;
  /** Whether to measure heartbeats in sessions, too. */
  readonly sessions?: boolean;
  progress(line: string): void;
}

export interface Contestant {
  readonly name: string;
  run(seconds: number): Promise<RoundResult>;
  /** Those it is compared with, by name, and the targets of the ratios. */
  readonly against?: { readonly [name: string]: number | null };
}

/** A warm-up that compiles the hot paths of the servers and is not counted. */
const WARM_UP_SECONDS = 3;

/** Contestants that are not part of this run are absent. */
export async function contest(
  { seconds, rounds, progress }: Settings,
  benchmark: string,
  about: string,
  given: readonly (Contestant | null | undefined)[],
): Promise<Report> {
  const contestants = given.flatMap((each) => (each ? [each] : []));
  const measured = contestants.map(({ name }) => ({ name, rounds: [] as RoundResult[] }));
  for (let round = 0; round <= rounds; round += 1) {
    const isWarmUp = round === 0;
    const outcomes: string[] = [];
    for (const [index, { name, run }] of contestants.entries()) {
      const result = await run(isWarmUp ? WARM_UP_SECONDS : seconds);
      if (!isWarmUp) measured[index]?.rounds.push(result);
      outcomes.push(`${name} ${rateOf(result).toFixed(0)}/s`);
    }
    const when = isWarmUp ? 'warm-up' : `round ${round} of ${rounds}`;
    progress(`${benchmark}, ${when}: ${outcomes.join(', ')}`);
  }
  return {
    benchmark,
    about,
    lines: measured.map(lineOf),
    comparisons: contestants.flatMap(({ against = {} }, index) =>
      Object.entries(against).flatMap(([name, target]) => {
        const [of, other] = [measured[index], measured.find((each) => each.name === name)];
        return of && other ? [compare(of, other, target)] : [];
      }),
    ),
    notes: [],
  };
}
