/** What an instance is among those that serve the same state, in memory that all its threads share. */

/**
 * Whether the instance writes; its epoch; since when what it holds may be outdated, in whole seconds since the epoch
 * modulo 2^32; how many revisions the state that it keeps ready is behind; and whether it waits for the end of a move.
 */
export type StandingMemory = Int32Array;

/** An instance that is linked to the one that writes. */
export interface LinkedFollower {
  /** The id of its start. */
  readonly instance: string;
  /** How many revisions the state is behind that it keeps ready; null while it keeps none. */
  readonly lag: number | null;
}

export interface InstanceStatus {
  readonly memory: StandingMemory;
  isWriter(): boolean;
  /** The number of the holding that the instance goes by; 0 when it knows of none. */
  epoch(): number;
  /**
   * Milliseconds since the epoch, of whole seconds: everything that was acknowledged before is in what the instance
   * holds, and of nobody who writes now is anything known. Null at any other time.
   */
  staleSince(): number | null;
  /**
   * How many revisions the state that this instance keeps ready was behind when it looked last; 0 for the writer.
   * Null while it keeps none.
   */
  lag(): number | null;
  /** Whether a state is being moved into the database, or out of it: no instance that waits gets a turn meanwhile. */
  isMoving(): boolean;
}

const WRITES = 0;
const EPOCH = 1;
const STALE_SINCE = 2;
const LAG = 3;
const MOVING = 4;

/** Never a time since which something is outdated: there is none. */
const NONE = 0;
const NO_STATE = -1;
const MOST_LAG = 2 ** 31 - 1;

export function createStandingMemory(): StandingMemory {
  const memory = new Int32Array(new SharedArrayBuffer(5 * Int32Array.BYTES_PER_ELEMENT));
  noteLag(memory, null);
  return memory;
}

export function standingIn(memory: StandingMemory): InstanceStatus {
  return {
    memory,
    isWriter: () => Atomics.load(memory, WRITES) === 1,
    epoch: () => Atomics.load(memory, EPOCH),
    staleSince() {
      const since = Atomics.load(memory, STALE_SINCE);
      return since === NONE ? null : (since >>> 0) * 1000;
    },
    lag() {
      const revisions = Atomics.load(memory, LAG);
      return revisions === NO_STATE ? null : revisions;
    },
    isMoving: () => Atomics.load(memory, MOVING) === 1,
  };
}

/** `since` in milliseconds since the epoch; null once it is known again who writes. */
export function noteStale(memory: StandingMemory, since: number | null): void {
  Atomics.store(memory, STALE_SINCE, since === null ? NONE : Math.floor(since / 1000) | 0);
}

/** The instance is linked to the one that writes. */
export function noteFollower(memory: StandingMemory, epoch: number): void {
  Atomics.store(memory, EPOCH, epoch);
}

/** Null while no state is kept ready. */
export function noteLag(memory: StandingMemory, revisions: number | null): void {
  Atomics.store(memory, LAG, revisions === null ? NO_STATE : Math.min(revisions, MOST_LAG));
}

export function noteMove(memory: StandingMemory, isMoving: boolean): void {
  Atomics.store(memory, MOVING, isMoving ? 1 : 0);
}

export function noteWriter(memory: StandingMemory, epoch: number): void {
  noteLag(memory, 0);
  Atomics.store(memory, EPOCH, epoch);
  Atomics.store(memory, WRITES, 1);
}
