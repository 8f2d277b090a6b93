/**
 * Individual advice that a node receives in addition to the bulletin [core-4-4-1]: when to send the next heartbeat, when
 * to renew, and notices about its certificate.
 */
import type { Certificate } from '../../../machines/certificate.ts';
import { HOUR_MS } from '../../base/duration.ts';
import {
  type Lifetime,
  placeOf,
  renewalOf,
  renewalWithin,
  windowEnd,
  windowOfOverlap,
} from '../../protocol/records/renewal-window.ts';

/** The most heartbeats per second that an authority should receive. */
const MOST_BEATS_PER_SECOND = 10_000;
/** How many heartbeats a node sends per activity window: normally, and at least when the load is high. */
const BEATS_PER_WINDOW = 10;
const LEAST_BEATS_PER_WINDOW = 3;
/** The fraction by which an interval may deviate from the average. */
const SPREAD = 0.1;

/** All durations are in milliseconds; `elapsed` is a monotonic clock. */
export function createHeartbeatInterval(activeWindow: number, elapsed: () => number) {
  const startedAt = elapsed();
  const least = activeWindow / BEATS_PER_WINDOW;
  const most = activeWindow / LEAST_BEATS_PER_WINDOW;
  let turn = 0;
  return {
    /** Seconds until the node should send its next heartbeat. */
    next(activeNodes: number): number {
      // Golden ratio steps spread any number of consecutive intervals evenly.
      turn = (turn + 0.618_033_988_749_895) % 1;
      // After a start, an entire fleet may reconnect at the same time, so spread it over the longest interval.
      if (elapsed() - startedAt < activeWindow) return inSeconds(most * (0.5 + turn / 2));
      const needed = (activeNodes / MOST_BEATS_PER_SECOND) * 1000;
      const interval = Math.min(most / (1 + SPREAD), Math.max(least, needed));
      return inSeconds(interval * (1 - SPREAD + 2 * SPREAD * turn));
    },
  };
}

function inSeconds(milliseconds: number): number {
  return Math.max(1, Math.round(milliseconds / 1000));
}

/** In milliseconds since the epoch. */
export interface CurrentKeyPeriod {
  /** When the current key of the authority took over. */
  readonly since: number;
  /** Until when the previous key signs together with it; null if none does. */
  readonly overlapUntil: number | null;
  /** Whether certificates that only an earlier key signed still count. */
  readonly isPlanned: boolean;
}

/**
 * When to renew a certificate: within its renewal window or, if an earlier key of the authority signed it, before most of
 * the overlap has passed; if that key is not trusted any more, within an hour after the current key took over.
 */
export function renewAfter(
  certId: string,
  life: Lifetime,
  { since, overlapUntil, isPlanned }: CurrentKeyPeriod,
): number {
  const due = renewalOf(certId, life);
  if (life.issuedAt >= since) return due;
  if (overlapUntil !== null)
    return renewalWithin(due, windowOfOverlap(certId, since, overlapUntil));
  return isPlanned ? due : since + Math.floor(placeOf(certId) * HOUR_MS);
}

/** Notices for the node as short codes, in a fixed order. There are almost never any. */
export function noticesOf(
  certificate: Lifetime & Pick<Certificate, 'renewedAt'>,
  at: number,
): readonly string[] {
  const isLate = at >= windowEnd(certificate);
  if (certificate.renewedAt === null) return isLate ? SOON : NONE;
  return isLate ? [...SOON, 'superseded'] : ['superseded'];
}

const NONE: readonly string[] = [];
const SOON: readonly string[] = ['certificate_expires_soon'];
