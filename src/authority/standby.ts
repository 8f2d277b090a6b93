/**
 * Keeps the state of a standby in memory, up to date while another instance writes it. A state that can no
 * longer be followed is dropped and read again.
 */
import type { After, Runtime } from '../base/runtime.ts';
import { createPauses } from '../base/work.ts';
import type { PreviousOwner, StandbyReader } from '../store/store.ts';
import type { ReadyState } from './open.ts';
import type { AuthorityState } from './state.ts';

export interface StandbyOptions {
  readonly reader: StandbyReader;
  /** Creates an empty state. */
  createState(): AuthorityState;
  /** How long `take` waits for a pending read, in milliseconds, before it closes the connection and reads again. */
  readonly patience: number;
  readonly elapsed: Runtime['elapsed'];
  readonly after: After;
  /** Called with the revision of each state that was read completely. */
  read(revision: number): void;
  /** Called when a state cannot be read or followed, but only once until one can again. */
  failed(cause: unknown): void;
  /** Called after the store was checked for changes, and again after the changes were applied. */
  looked(): void;
}

export type Standby = ReturnType<typeof createStandby>;

/** How often to check for changes. */
const FOLLOW_MS = 250;
/** How often to check for changes to liveness, which may affect every node. */
const LIVENESS_MS = 5000;
/** After a check of liveness, the pause before the next one is at least this many times as long as the check. */
const LIVENESS_PART = 20;
/** How long to wait before trying again to read a state. */
const AGAIN_MS = 5000;

export function createStandby(options: StandbyOptions) {
  const { reader, elapsed } = options;
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

  /** Performs one step; returns how long to wait before the next one. */
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
    const stored = await reader.load();
    const fresh = options.createState();
    await fresh.read(stored);
    await stored.end();
    state = fresh;
    facts = stored;
    revision = stored.revision;
    options.read(revision);
  }

  /** Returns false if the state had to be dropped. */
  async function catchUp(withLiveness: boolean): Promise<boolean> {
    const began = elapsed();
    const changes = await reader.changes(withLiveness);
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
      // Some of the changes may have been applied.
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

  /**
   * Closes the connection if the server does not respond in time, because it may have disappeared without notice. The
   * state is kept, because no part of the response has been applied.
   */
  async function unlessSilent<T>(reading: Promise<T>): Promise<T> {
    const cancel = options.after(options.patience, () => {
      if (!isApplying) void reader.leave();
    });
    try {
      return await reading;
    } finally {
      cancel();
    }
  }

  /** Catches up, and tries once more if the connection was closed or lost before any changes were applied. */
  async function catchUpAnyway(): Promise<boolean> {
    try {
      return await unlessSilent(catchUp(true));
    } catch (cause) {
      if (state === null) throw cause;
      return await catchUp(true);
    }
  }

  return {
    /** How many revisions the state is behind the last known revision of the store; null if there is no state. */
    lag: (): number | null =>
      state === null ? null : Math.max(0, reader.seenRevision() - revision),
    /** The position of the newest state ever read; null before the first one. */
    newest: reader.newest,
    /**
     * Returns the state as of the newest revision, or null if there is none. Call once, when this process has become
     * active; nothing is followed afterward.
     */
    async take(previousOwner: PreviousOwner): Promise<ReadyState | null> {
      await unlessSilent(end());
      try {
        if (state === null || !(await catchUpAnyway())) return null;
      } catch {
        await drop();
        return null;
      } finally {
        await reader.close();
      }
      if (state === null || facts === null) return null;
      const ready = { state, revision, facts: { ...facts, previousOwner } };
      state = null;
      return ready;
    },
    /** Stops following and drops the state. */
    async close(): Promise<void> {
      isOver = true;
      await reader.close();
      await end();
      await drop();
    },
  };
}
