/**
 * Sliding-window rate limits: events older than the window are forgotten, a request is refused when the
 * count has reached the limit, and refused requests are not counted. [service-rate-limits] and [core-4-1]
 * fix exactly this; the common libraries count in fixed windows, or count what they refuse.
 */
import { detached } from '../../base/detached.ts';
import { RATE_BUCKETS, type RateBucket } from '../../protocol/route-description.ts';

export interface RateLimit {
  readonly count: number;
  readonly windowSeconds: number;
}

/** Keys remembered per bucket; beyond this the key that has been idle longest is dropped. */
const MAX_KEYS = 50_000;

export function createRateLimiter(limit: RateLimit) {
  const windowMs = limit.windowSeconds * 1000;
  /** Times of the counted events by key, oldest first; keys in the order of their last event. */
  const events = new Map<string, number[]>();
  const oldest = oldestFirst(events);
  let turn = events.entries();

  /** Cycles through all keys, two for each potentially new one, so that outdated keys do not accumulate. */
  function forgetPast(now: number): void {
    for (let looked = 0; looked < 2; looked += 1) {
      const next = turn.next();
      if (next.done === true) {
        turn = events.entries();
        return;
      }
      const [key, times] = next.value;
      if ((times.at(-1) ?? 0) <= now - windowMs) events.delete(key);
    }
  }

  function recent(key: string, now: number): number[] {
    const times = events.get(key);
    if (times === undefined) return [];
    // After the clock was set back, no wait exceeds one window.
    for (let i = times.length - 1; i >= 0 && (times[i] ?? 0) > now; i -= 1) times[i] = now;
    const firstRecent = times.findIndex((time) => time > now - windowMs);
    if (firstRecent === -1) events.delete(key);
    else if (firstRecent > 0) times.splice(0, firstRecent);
    return firstRecent === -1 ? [] : times;
  }

  return {
    /** Seconds until a request would pass; 0 if it passes now. */
    retryAfter(key: string, now: number): number {
      const times = recent(key, now);
      if (times.length < limit.count) return 0;
      const freed = times[times.length - limit.count];
      return freed === undefined ? limit.windowSeconds : secondsUntil(freed + windowMs, now);
    },
    count(key: string, now: number): void {
      const times = recent(key, now);
      times.push(now);
      events.delete(key);
      // A node key in the rate limit key is a slice of a body.
      events.set(detached(key), times);
      forgetPast(now);
      if (events.size > MAX_KEYS) oldest.take();
      else oldest.pass();
    },
    /** Removes the event that was counted at that time. */
    giveBack(key: string, counted: number): void {
      const times = events.get(key) ?? [];
      const index = times.lastIndexOf(counted);
      if (index !== -1) times.splice(index, 1);
    },
    /** The number of remembered keys. */
    keys: (): number => events.size,
  };
}

function secondsUntil(instant: number, now: number): number {
  return Math.max(1, Math.ceil((instant - now) / 1000));
}

/** All buckets, as seen by an edge; an answer is a promise if another thread keeps the counts. */
export interface RateLimits {
  isOn(bucket: RateBucket): boolean;
  /** Counts a request and returns 0, or returns the seconds until one would pass. */
  take(bucket: RateBucket, key: string, now: number): number | Promise<number>;
}

export type RateLimitSettings = Readonly<Record<RateBucket, RateLimit | null>>;

/** Limits with their counts on this thread, so that every answer is synchronous. */
export type LocalRateLimits = ReturnType<typeof createRateLimits>;

export function createRateLimits(settings: RateLimitSettings) {
  const limiters = new Map(
    RATE_BUCKETS.flatMap((bucket) => {
      const limit = settings[bucket];
      return limit === null ? [] : [[bucket, createRateLimiter(limit)] as const];
    }),
  );

  return {
    isOn: (bucket: RateBucket) => limiters.has(bucket),
    take(bucket: RateBucket, key: string, now: number): number {
      const limiter = limiters.get(bucket);
      if (limiter === undefined) return 0;
      const seconds = limiter.retryAfter(key, now);
      if (seconds === 0) limiter.count(key, now);
      return seconds;
    },
  };
}

/**
 * Removes the keys of a map in insertion order. A map keeps slots of deleted entries until it is resized, and a new
 * iterator must skip all of them: in a map of 50,000 keys that evicts its oldest key for each new one, that takes 30 µs
 * each time. A persistent iterator does not visit them again, and sees keys that are added later. But an idle iterator
 * must not be kept: it retains each table that the map has outgrown since.
 */
export function oldestFirst<Key>(map: Map<Key, unknown>) {
  let keys: IterableIterator<Key> | null = null;
  let passed = 0;

  function next(): Key | undefined {
    keys ??= map.keys();
    const { done, value } = keys.next();
    if (done !== true) return value;
    // A finished iterator never continues.
    keys = map.keys();
    return keys.next().value;
  }

  return {
    /** Deletes and returns the oldest key; undefined if there is none. */
    take(): Key | undefined {
      passed = 0;
      const key = next();
      if (key !== undefined) map.delete(key);
      return key;
    },
    /** Call whenever the map has changed without a call of `take`. */
    pass(): void {
      passed += 1;
      if (passed > map.size) keys = null;
    },
  };
}
