/**
 * Limits large bodies sent in the name of an operator key. A signature covers the canonical text, so a forgery is
 * detected only after parsing and serializing the body. The limit applies per source and, because sources are cheap,
 * per thread in total. A sender that has recently proven possession of the key, with a request of any size, has a
 * separate allowance, so strangers cannot block an operator's import.
 */
import { createRateLimiter } from './rate-limit.ts';

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
