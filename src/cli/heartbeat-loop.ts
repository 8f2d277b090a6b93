import { setTimeout as sleep } from 'node:timers/promises';
import { AuthorityError, isUnreachable } from '../client/authority-error.ts';
import { LONGEST_INTERVAL_SECONDS } from './options.ts';

export interface HeartbeatLoop {
  readonly beat: () => Promise<unknown>;
  readonly everySeconds: number;
  /** Returns a number from 0 to 1; spreads the heartbeats of a fleet that was started at once. */
  readonly random: () => number;
  /** Called for each heartbeat that was not acknowledged while the loop continues. */
  readonly onMissed: (error: AuthorityError) => void;
  readonly signal: AbortSignal;
}

export type HeartbeatCount = { acknowledged: number; missed: number };

/** Sends heartbeats until the signal; throws a refusal that retries cannot resolve. */
export async function keepBeating(loop: HeartbeatLoop): Promise<HeartbeatCount> {
  const count = { acknowledged: 0, missed: 0 };
  while (!loop.signal.aborted) {
    let atLeastMs = 0;
    try {
      await loop.beat();
      count.acknowledged += 1;
    } catch (error) {
      if (!mayPass(error)) throw error;
      count.missed += 1;
      atLeastMs = Math.min(error.retryAfter ?? 0, LONGEST_INTERVAL_SECONDS) * 1000;
      loop.onMissed(error);
    }
    const spreadMs = loop.everySeconds * 1000 * (0.9 + 0.2 * loop.random());
    await pause(Math.max(spreadMs, atLeastMs), loop.signal);
  }
  return count;
}

/**
 * 401 and an expired or superseded descriptor pass when a wrong clock is corrected, 429 after a wait; other
 * refusals are final.
 */
function mayPass(error: unknown): error is AuthorityError {
  if (!(error instanceof AuthorityError)) return false;
  if (isUnreachable(error)) return true;
  if (error.code === 'descriptor_expired' || error.code === 'descriptor_superseded') return true;
  return error.status === 401 || error.status === 429;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
