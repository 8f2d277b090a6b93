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

/**
 * Limits large bodies sent in the name of an operator key. A signature covers the canonical text, so a forgery is
 * detected only after parsing and serializing the body. The limit applies per source and, because sources are cheap,
 * per thread in total. A sender that has recently proven possession of the key, with a request of any size, has a
 * separate allowance, so strangers cannot block an operator's import.
 */

/** Bodies of other operator routes are no larger. */
const LARGEST_ORDINARY_BODY = 256 * 1024;

/** The worst body of 2 MiB takes about half a second: a twentieth of a thread. */
const OF_ALL = { count: 6, windowSeconds: 60 };
const OF_ONE_SOURCE = { count: 2, windowSeconds: 60 };
/** The allowance of a source that has proven possession of the key; strangers may share its address. */
const OF_A_PROVEN_SENDER = { count: 6, windowSeconds: 60 };

/** How long a proof counts, and for how many senders; only key holders can be among them. */
const PROVEN_MS = 10 * 60_000;
const MOST_PROVEN = 1000;

export function isLargeBody({ byteLength }: Uint8Array): boolean {
  return byteLength > LARGEST_ORDINARY_BODY;
}

export interface Sender {
  /** The address block that limits count by. */
  readonly source: string;
  /** The id of a configured key. */
  readonly keyId: string;
}

export type UnprovenBodies = ReturnType<typeof createUnprovenBodies>;

export function createUnprovenBodies() {
  const ofAll = createRateLimiter(OF_ALL);
  const ofSource = createRateLimiter(OF_ONE_SOURCE);
  const ofProven = createRateLimiter(OF_A_PROVEN_SENDER);
  /** When each sender last proved possession of the key, oldest first. */
  const provenAt = new Map<string, number>();

  function allowances(sender: Sender, now: number) {
    const known = provenAt.get(nameOf(sender)) ?? -Infinity;
    return now - known < PROVEN_MS
      ? [{ limiter: ofProven, key: nameOf(sender) }]
      : [
          { limiter: ofSource, key: sender.source },
          { limiter: ofAll, key: '' },
        ];
  }

  return {
    /** Counts a large body that is about to be read and returns 0, or returns the seconds until one may be read. */
    take(sender: Sender, now: number): number {
      const counted = allowances(sender, now);
      const seconds = Math.max(...counted.map(({ limiter, key }) => limiter.retryAfter(key, now)));
      if (seconds === 0) for (const { limiter, key } of counted) limiter.count(key, now);
      return seconds;
    },
    /** Reverts the count of a large body whose signature verified. */
    giveBack(sender: Sender, now: number): void {
      for (const { limiter, key } of allowances(sender, now)) limiter.giveBack(key, now);
    },
    /** Records that the sender has the key. */
    proved(sender: Sender, now: number): void {
      const name = nameOf(sender);
      provenAt.delete(name);
      provenAt.set(name, now);
      const [oldest] = provenAt.size > MOST_PROVEN ? provenAt.keys() : [];
      if (oldest !== undefined) provenAt.delete(oldest);
    },
  };
}

function nameOf({ source, keyId }: Sender): string {
  return `${source} ${keyId}`;
}
