/** Rounds of several contestants in turn, so that other load on the machine affects all of them. */
import { assertAccepted, type RoundResult } from './round.ts';

export type Settings = {
  readonly seconds: number;
  readonly rounds: number;
  /** Null means the default of each benchmark. */
  readonly connections: number | null;
  /** Requests per second of the open loop; null means the closed loop. */
  readonly rate: number | null;
  /** Whether to measure heartbeats in sessions, too. */
  readonly sessions: boolean;
  /** Nodes of the fleet that sends heartbeats. */
  readonly nodes: number;
  /** Readers of events. */
  readonly readers: number;
  /** The length of a run that watches memory. */
  readonly minutes: number;
  /** Nodes of the large network, and its folder; null creates a new one. */
  readonly seeded: number;
  readonly dataDir: string | null;
  /** Threads of the authority that serve HTTP. */
  readonly threads: number;
  readonly cpuProf: string | null;
  /** Another checkout with its own build, to be measured along with this one; null for none. */
  readonly against: string | null;
  readonly progress: (line: string) => void;
};

export interface Contestant {
  readonly name: string;
  run(seconds: number): Promise<RoundResult>;
}

export interface Measured {
  readonly name: string;
  readonly rounds: readonly RoundResult[];
}

export interface Upcoming {
  readonly seconds: number;
  /** The best rate of any contestant so far, which determines how many requests to prepare. */
  readonly fastest: number;
}

/** A warm-up that compiles the hot paths of the servers and is not counted. */
const WARM_UP_SECONDS = 3;
const FIRST_GUESS = 25_000;

export async function contest(
  contestants: readonly Contestant[],
  { seconds, rounds, progress }: Settings,
  prepare: (upcoming: Upcoming) => Promise<unknown> = async () => undefined,
): Promise<Measured[]> {
  const standings = contestants.map(({ name, run }) => ({
    name,
    run,
    rounds: [] as RoundResult[],
  }));
  let fastest = FIRST_GUESS;
  for (let round = 0; round <= rounds; round += 1) {
    const isWarmUp = round === 0;
    const length = isWarmUp ? WARM_UP_SECONDS : seconds;
    await prepare({ seconds: length, fastest });
    const rates: number[] = [];
    for (const { name, run, rounds: kept } of standings) {
      const result = assertAccepted(name, await run(length));
      if (!isWarmUp) kept.push(result);
      rates.push(rateOf(result));
    }
    fastest = Math.max(...rates, isWarmUp ? 0 : fastest);
    const outcomes = standings.map(({ name }, index) => `${name} ${rates[index]?.toFixed(0)}/s`);
    progress(`${isWarmUp ? 'warm-up' : `round ${round} of ${rounds}`}: ${outcomes.join(', ')}`);
  }
  return standings;
}

export function rateOf({ answered, seconds }: RoundResult): number {
  return answered / seconds;
}
