/** A store with timing, which is unhealthy while a commit takes too long. */
import { COMMIT_OVERDUE, type Store } from './store.ts';

/** If a commit takes longer than this, the disk is considered hung. */
const SLOWEST_COMMIT_MS = 2000;

export interface StoreTimes {
  /** Milliseconds on the monotonic clock. */
  elapsed(): number;
  stored(work: 'commit' | 'liveness_flush', seconds: number): void;
}

export function measured(store: Store, { elapsed, stored }: StoreTimes): Store {
  /** Start times of the commits in flight, oldest first. */
  const underWay = new Map<symbol, number>();

  return {
    ...store,
    async commit(unit) {
      const started = elapsed();
      const commit = Symbol('commit');
      underWay.set(commit, started);
      try {
        const revision = await store.commit(unit);
        stored('commit', (elapsed() - started) / 1000);
        return revision;
      } finally {
        underWay.delete(commit);
      }
    },
    async touchMany(rows, unstoredTimes) {
      const started = elapsed();
      await store.touchMany(rows, unstoredTimes);
      stored('liveness_flush', (elapsed() - started) / 1000);
    },
    health() {
      for (const started of underWay.values()) {
        if (elapsed() - started > SLOWEST_COMMIT_MS) return COMMIT_OVERDUE;
        break;
      }
      return store.health();
    },
  };
}
