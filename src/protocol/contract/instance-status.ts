/** The status of an instance among those that serve the same state, in memory shared by its threads. */

/**
 * Whether the instance is the writer; its epoch; since when its data may be outdated, in whole seconds since 1970
 * modulo 2^32; how many revisions its standby state is behind; and whether it waits for the end of a move.
 */
export type InstanceStatusMemory = Int32Array;

/** An instance that is linked to the writer. */
export interface LinkedFollower {
  /** The id of that start of the instance. */
  readonly instance: string;
  /** How many revisions its standby state is behind; null while it has none. */
  readonly lag: number | null;
  /** The staged authority key, if the instance holds it. */
  readonly nextKey: string | null;
}

const WRITES = 0;
const EPOCH = 1;
const STALE_SINCE = 2;
const LAG = 3;
const MOVING = 4;

/** Stored if nothing may be outdated. */
const NONE = 0;
const NO_STATE = -1;
const MOST_LAG = 2 ** 31 - 1;

export function createInstanceStatusMemory(): InstanceStatusMemory {
  const memory = new Int32Array(new SharedArrayBuffer(5 * Int32Array.BYTES_PER_ELEMENT));
  noteLag(memory, null);
  return memory;
}

export type InstanceStatus = ReturnType<typeof instanceStatusIn>;

export function instanceStatusIn(memory: InstanceStatusMemory) {
  return {
    memory,
    isWriter: (): boolean => Atomics.load(memory, WRITES) === 1,
    /** The lease epoch that the instance knows; 0 if it knows none. */
    epoch: (): number => Atomics.load(memory, EPOCH),
    /**
     * If the writer is unknown: the time, in milliseconds since 1970 at whole seconds, up to which the instance has
     * everything that was acknowledged. Otherwise null.
     */
    staleSince(): number | null {
      const since = Atomics.load(memory, STALE_SINCE);
      return since === NONE ? null : (since >>> 0) * 1000;
    },
    /**
     * How many revisions the standby state of this instance was behind at the last check; 0 for the writer. Null while it
     * has none.
     */
    lag(): number | null {
      const revisions = Atomics.load(memory, LAG);
      return revisions === NO_STATE ? null : revisions;
    },
    /** Whether a state is being moved into or out of the database: no waiting instance becomes the writer meanwhile. */
    isMoving: (): boolean => Atomics.load(memory, MOVING) === 1,
  };
}

/** `since` in milliseconds since the epoch; null once the writer is known again. */
export function noteStale(memory: InstanceStatusMemory, since: number | null): void {
  Atomics.store(memory, STALE_SINCE, since === null ? NONE : Math.floor(since / 1000) | 0);
}

/** Records that the instance is linked to the writer. */
export function noteFollower(memory: InstanceStatusMemory, epoch: number): void {
  Atomics.store(memory, EPOCH, epoch);
}

/** Null while there is no standby state. */
export function noteLag(memory: InstanceStatusMemory, revisions: number | null): void {
  Atomics.store(memory, LAG, revisions === null ? NO_STATE : Math.min(revisions, MOST_LAG));
}

export function noteMove(memory: InstanceStatusMemory, isMoving: boolean): void {
  Atomics.store(memory, MOVING, isMoving ? 1 : 0);
}

export function noteWriter(memory: InstanceStatusMemory, epoch: number): void {
  noteLag(memory, 0);
  Atomics.store(memory, EPOCH, epoch);
  Atomics.store(memory, WRITES, 1);
}
