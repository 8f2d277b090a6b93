import { parseRequestTimestamp } from '../../base/timestamp.ts';

export type TimestampVerdict =
  | { readonly verdict: 'invalid_timestamp' | 'stale_timestamp'; readonly signedAt: 0 }
  | { readonly verdict: 'current'; readonly signedAt: number };

/** Judges a signed request's timestamp: its age, past or future, may be at most the tolerance. */
export function judgeTimestamp(text: string, now: number, toleranceMs: number): TimestampVerdict {
  const signedAt = parseRequestTimestamp(text);
  if (signedAt === null) return { verdict: 'invalid_timestamp', signedAt: 0 };
  if (Math.abs(now - signedAt) > toleranceMs) return { verdict: 'stale_timestamp', signedAt: 0 };
  return { verdict: 'current', signedAt };
}
