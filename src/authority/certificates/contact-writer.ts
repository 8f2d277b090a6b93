/**
 * Stores contacts in batches. Each batch also stores the range of signing times in which heartbeats may be acknowledged
 * before they are stored. A large batch is stored in parts, because requests have to wait while rows are encoded.
 */
import { createTurns } from '../../base/work.ts';
import type { Store } from '../../store/store.ts';
import type { Replay } from '../replay/replay.ts';
import type { Liveness } from './last-contact.ts';

export interface ContactWriterOptions {
  readonly liveness: Liveness;
  readonly store: Pick<Store, 'touchMany'>;
  readonly replay: Pick<Replay, 'isBeyondStoredRange' | 'rangesToStore' | 'rangesStored'>;
  now(): number;
  readonly failed: (cause: unknown) => void;
}

/** These take about a millisecond of the thread. */
const ROWS_OF_A_PART = 500;
/** A batch that took more turns of the event loop could store its range too late. */
const MOST_PARTS = 16;

export function createContactWriter(options: ContactWriterOptions) {
  const { liveness, store, replay, now, failed } = options;
  /** Batches are stored one at a time, because only the last range determines what is covered. */
  const turns = createTurns();
  let isCatchingUp = false;

  async function storeBatch(): Promise<void> {
    const count = liveness.dirtyCount();
    const most = Math.max(ROWS_OF_A_PART, Math.ceil(count / MOST_PARTS));
    for (let left = count; left > most; left -= most) {
      await store.touchMany(liveness.takeDirty(most), null);
    }
    // The range comes last: until then, the previous one covers what is not stored yet. What changes meanwhile is left
    // to the next batch.
    await store.touchMany(liveness.takeDirty(most), replay.rangesToStore(now()));
    replay.rangesStored();
  }

  function storeRange(): Promise<void> {
    return turns.run(storeBatch);
  }

  return {
    /** Stores a new range along with changed contacts. Call it after the units that it must include. */
    storeRange,
    /** Stores changed contacts; resolves when these and all earlier batches are on disk. */
    flush: (): Promise<void> =>
      turns.run(async () => {
        if (liveness.dirtyCount() > 0) await storeBatch();
      }),
    /**
     * Notes an accepted heartbeat. After a period without heartbeats, current signing times lie beyond the stored range,
     * and every heartbeat until the next flush would wait for the disk, so a new range is stored immediately.
     */
    accepted(signedAt: number, at: number) {
      if (isCatchingUp || !replay.isBeyondStoredRange(signedAt, at)) return;
      isCatchingUp = true;
      storeRange()
        .catch(failed)
        .finally(() => {
          isCatchingUp = false;
        });
    },
  };
}
