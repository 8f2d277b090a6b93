/**
 * Stores contacts in batches. Each batch also stores the range of signing times in which heartbeats may be acknowledged
 * before they are stored.
 */
import { createTurns } from '../../base/work.ts';
import type { Store, StoredLiveness } from '../../store/store.ts';
import type { Replay } from '../replay/replay.ts';
import type { Liveness } from './last-contact.ts';

export interface ContactWriter {
  /** Stores changed contacts; resolves when these and all earlier batches are on disk. */
  flush(): Promise<void>;
  /** Stores a new range along with changed contacts. Call it after the units that it must include. */
  storeRange(): Promise<void>;
  /**
   * Notes an accepted heartbeat. After a period without heartbeats, current signing times lie beyond the stored range,
   * and every heartbeat until the next flush would wait for the disk, so a new range is stored immediately.
   */
  accepted(signedAt: number, now: number): void;
}

export interface ContactWriterOptions {
  readonly liveness: Liveness;
  readonly store: Pick<Store, 'touchMany'>;
  readonly replay: Pick<Replay, 'isBeyondStoredRange' | 'rangesToStore' | 'rangesStored'>;
  now(): number;
  readonly failed: (cause: unknown) => void;
}

export function createContactWriter(options: ContactWriterOptions): ContactWriter {
  const { liveness, store, replay, now, failed } = options;
  /** Batches are stored one at a time, because only the last range determines what is covered. */
  const turns = createTurns();
  let isCatchingUp = false;

  async function storeRows(rows: readonly StoredLiveness[]): Promise<void> {
    await store.touchMany(rows, replay.rangesToStore(now()));
    replay.rangesStored();
  }

  function storeRange(): Promise<void> {
    return turns.run(() => storeRows(liveness.takeDirty()));
  }

  return {
    storeRange,
    flush: () =>
      turns.run(async () => {
        const rows = liveness.takeDirty();
        if (rows.length > 0) await storeRows(rows);
      }),
    accepted(signedAt, at) {
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
