/** The status of an instance among those that serve the same state, in memory shared by its threads. */

/**
 * Whether the instance is active; the term that it knows; whether certainly nobody is active; how many revisions its
 * standby state is behind; whether it waits for the end of a move; and how often the active instance has answered.
 */
export type InstanceStatusMemory = Int32Array;

const ACTIVE = 0;
const TERM = 1;
const VACANT = 2;
const LAG = 3;
const MOVING = 4;
const ANSWERS = 5;

const NO_STATE = -1;
const MOST_LAG = 2 ** 31 - 1;

export function createInstanceStatusMemory(): InstanceStatusMemory {
  const memory = new Int32Array(new SharedArrayBuffer(6 * Int32Array.BYTES_PER_ELEMENT));
  noteLag(memory, null);
  return memory;
}

export type InstanceStatus = ReturnType<typeof instanceStatusIn>;

export function instanceStatusIn(memory: InstanceStatusMemory) {
  return {
    memory,
    isActive: (): boolean => Atomics.load(memory, ACTIVE) === 1,
    /** The term that the instance knows; 0 if it knows none. */
    term: (): number => Atomics.load(memory, TERM),
    /** Whether neither a writable database nor an active instance was reached for the length of a lease. */
    isVacant: (): boolean => Atomics.load(memory, VACANT) === 1,
    /**
     * How many revisions the standby state of this instance was behind at the last check; 0 for the active instance. Null
     * while it has none.
     */
    lag(): number | null {
      const revisions = Atomics.load(memory, LAG);
      return revisions === NO_STATE ? null : revisions;
    },
    /** Whether a state is being moved into or out of the database: no standby becomes active meanwhile. */
    isMoving: (): boolean => Atomics.load(memory, MOVING) === 1,
  };
}

export function noteVacant(memory: InstanceStatusMemory, isVacant: boolean): void {
  Atomics.store(memory, VACANT, isVacant ? 1 : 0);
}

/** Counts an answer of the active instance to this one. */
export function noteAnswer(memory: InstanceStatusMemory): void {
  Atomics.add(memory, ANSWERS, 1);
}

/** Changes with each answer of the active instance. */
export function answersIn(memory: InstanceStatusMemory): number {
  return Atomics.load(memory, ANSWERS);
}

/** Records the term of another instance. */
export function noteTerm(memory: InstanceStatusMemory, term: number): void {
  Atomics.store(memory, TERM, term);
}

/** Null while there is no standby state. */
export function noteLag(memory: InstanceStatusMemory, revisions: number | null): void {
  Atomics.store(memory, LAG, revisions === null ? NO_STATE : Math.min(revisions, MOST_LAG));
}

export function noteMove(memory: InstanceStatusMemory, isMoving: boolean): void {
  Atomics.store(memory, MOVING, isMoving ? 1 : 0);
}

/** Records that this instance is active. */
export function noteActive(memory: InstanceStatusMemory, term: number): void {
  noteLag(memory, 0);
  Atomics.store(memory, TERM, term);
  Atomics.store(memory, ACTIVE, 1);
}
