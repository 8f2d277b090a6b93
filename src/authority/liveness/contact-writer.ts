/**
 * Stores contacts in batches, and with each the range of signing times in which heartbeats may be acknowledged
 * before they are stored.
 */
import { createTurns } from '../../base/work.ts';
import type { Store, StoredLiveness } from '../../store/store.ts';
import type { Replay } from '../replay/replay.ts';
import type { Liveness } from './last-contact.ts';

export interface ContactWriter {
  /** Stores what has changed; resolves when it and everything taken before is on disk. */
  flush(): Promise<void>;
  /** Stores a new range, with what has changed. Call it after units that must be part of it. */
  storeRange(): Promise<void>;
  /**
   * A heartbeat was accepted. When nobody was heard of for a while, the stored range has been left behind, and every
   * heartbeat up to the next flush would wait for the disk; so a new range is stored at once.
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
  /** One at a time: what is covered rests on the last range alone. */
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
