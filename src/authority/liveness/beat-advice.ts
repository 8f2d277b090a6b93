/**
 * What a node receives in addition to the bulletin, for itself alone [core-4-4-1]: when to beat next, when to renew, and what
 * it should know of its certificate.
 */
import type { Certificate } from '../../../machines/certificate.ts';
import {
  type Lifetime,
  placeOf,
  renewalOf,
  windowEnd,
} from '../../protocol/records/renewal-window.ts';

/** Heartbeats that an authority is asked for at most, each second. */
const MOST_BEATS_PER_SECOND = 10_000;
/** A node beats this often within the window in which it counts as active, and at least so often under load. */
const BEATS_PER_WINDOW = 10;
const LEAST_BEATS_PER_WINDOW = 3;
/** How far an interval is from the next. */
const SPREAD = 0.1;

export interface HeartbeatInterval {
  /** Seconds until the next heartbeat of a node. */
  next(activeNodes: number): number;
}

/** `elapsed` is a monotonic clock; all are in milliseconds. */
export function createHeartbeatInterval(
  activeWindow: number,
  elapsed: () => number,
): HeartbeatInterval {
  const startedAt = elapsed();
  const least = activeWindow / BEATS_PER_WINDOW;
  const most = activeWindow / LEAST_BEATS_PER_WINDOW;
  let turn = 0;
  return {
    next(activeNodes) {
      // Steps of the golden ratio: any number of intervals in a row are spread evenly.
      turn = (turn + 0.618_033_988_749_895) % 1;
      // A fleet that found the authority again at once is spread over the longest interval.
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

const HOUR = 3_600_000;

/**
 * When a certificate is to be renewed: in its window; what an earlier key of the authority signed, within an hour of
 * the new key.
 */
export function renewAfter(certId: string, life: Lifetime, keyValidFrom: number): number {
  return life.issuedAt < keyValidFrom
    ? keyValidFrom + placeOf(certId) * HOUR
    : renewalOf(certId, life);
}

/** Short codes, in this order. Nearly always there are none. */
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
