/**
 * What an instance that waits for its turn keeps ready: the state in memory, brought up to date while another writes
 * it. A state that cannot be followed any further is dropped, and read again.
 */
import type { Runtime } from '../base/runtime.ts';
import { createPauses } from '../base/work.ts';
import type { PreviousOwner, StateFollower, StatePosition } from '../store/store.ts';
import type { ReadyState } from './open.ts';
import type { AuthorityState } from './state.ts';

export interface SuccessorOptions {
  readonly follower: StateFollower;
  /** An empty state. */
  createState(): AuthorityState;
  /** How long a turn waits for a store that was looked at before, in milliseconds: then it asks it anew. */
  readonly patience: number;
  readonly elapsed: Runtime['elapsed'];
  /** Calls back once after this many milliseconds; returns what prevents it. */
  after(milliseconds: number, work: () => void): () => void;
  /** Called with each state that was read whole. */
  read(revision: number): void;
  /** Called when a state cannot be read or followed, once until one can. */
  failed(cause: unknown): void;
  /** Called when the store was looked at, and again when what was seen is applied. */
  looked(): void;
}

export interface Successor {
  /** How many revisions the state is behind what was last seen of the store; null when there is no state. */
  lag(): number | null;
  /** The newest state that was ever read; null before the first. */
  newest(): StatePosition | null;
  /**
   * The state as of the newest revision, or null when there is none. Call once, when this process is the one that
   * writes: nothing is followed after this.
   */
  take(previousOwner: PreviousOwner): Promise<ReadyState | null>;
  /** Follows no further, and drops the state. */
  close(): Promise<void>;
}

/** How often changes are looked for. */
const FOLLOW_MS = 250;
/** How often changes of liveness are looked for, of which there may be one for each node. */
const LIVENESS_MS = 5000;
/** A look at them may take one part in this many of the time. */
const LIVENESS_PART = 20;
/** Before a state is read again that could not be read. */
const AGAIN_MS = 5000;

export function createSuccessor(options: SuccessorOptions): Successor {
  const { follower, elapsed } = options;
  let state: AuthorityState | null = null;
  let facts: Omit<ReadyState['facts'], 'previousOwner'> | null = null;
  let revision = 0;
  const pauses = createPauses(elapsed, { perWork: LIVENESS_PART, shortestMs: LIVENESS_MS });
  let hasFailed = false;
  let isApplying = false;
  let isOver = false;
  let wake: () => void = () => undefined;
  const following = follow();

  async function follow(): Promise<void> {
    while (!isOver) {
      const wait = await stepOrWait();
      options.looked();
      if (!isOver) await pause(wait);
    }
  }

  /** How long to wait for the next step. */
  async function stepOrWait(): Promise<number> {
    try {
      if (state === null) await readAll();
      else if (!(await catchUp(pauses.left() <= 0))) return 0;
      hasFailed = false;
      return FOLLOW_MS;
    } catch (cause) {
      if (!isOver && !hasFailed) options.failed(cause);
      hasFailed = true;
      return state === null ? AGAIN_MS : FOLLOW_MS;
    }
  }

  async function readAll(): Promise<void> {
    const stored = await follower.load();
    const fresh = options.createState();
    await fresh.read(stored);
    await stored.end();
    state = fresh;
    facts = stored;
    revision = stored.revision;
    options.read(revision);
  }

  /** False when the state had to be dropped. */
  async function catchUp(withLiveness: boolean): Promise<boolean> {
    const began = elapsed();
    const changes = await follower.changes(withLiveness);
    if (changes === null) {
      await drop();
      return false;
    }
    options.looked();
    isApplying = true;
    try {
      await state?.apply(changes);
      await changes.end();
    } catch (cause) {
      // A part of the changes may have been applied.
      await drop();
      throw cause;
    } finally {
      isApplying = false;
    }
    facts = changes;
    revision = changes.revision;
    if (withLiveness) pauses.after(began);
    return true;
  }

  async function drop(): Promise<void> {
    const dropped = state;
    state = null;
    facts = null;
    revision = 0;
    await dropped?.close();
  }

  function pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = options.after(milliseconds, resolve);
      wake = () => {
        cancel();
        resolve();
      };
    });
  }

  async function end(): Promise<void> {
    isOver = true;
    wake();
    await following;
  }

  /** A server that is gone without a word would be waited for. The state is kept: nothing of what it was asked for has come. */
  async function unlessSilent<T>(reading: Promise<T>): Promise<T> {
    const cancel = options.after(options.patience, () => {
      if (!isApplying) void follower.leave();
    });
    try {
      return await reading;
    } finally {
      cancel();
    }
  }

  /** Once more where the connection was given up, or lost while nothing was read. */
  async function catchUpAnyway(): Promise<boolean> {
    try {
      return await unlessSilent(catchUp(true));
    } catch (cause) {
      if (state === null) throw cause;
      return await catchUp(true);
    }
  }

  return {
    lag: () => (state === null ? null : Math.max(0, follower.seenRevision() - revision)),
    newest: follower.newest,
    async take(previousOwner) {
      await unlessSilent(end());
      try {
        if (state === null || !(await catchUpAnyway())) return null;
      } catch {
        await drop();
        return null;
      } finally {
        await follower.close();
      }
      if (state === null || facts === null) return null;
      const ready = { state, revision, facts: { ...facts, previousOwner } };
      state = null;
      return ready;
    },
    async close() {
      isOver = true;
      await follower.close();
      await end();
      await drop();
    },
  };
}
