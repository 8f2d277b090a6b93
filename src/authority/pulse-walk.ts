/**
 * A walk over the active pulses as they stand when it starts, a few at a time. The list goes on changing
 * meanwhile, so whoever changes a pulse hands it to the walk first: one that was not visited yet is then
 * kept as it was.
 */
import type { Pulse } from './liveness.ts';

/** What a walk tells of a pulse. `lastSeen` in milliseconds since the epoch. */
export type PulseSight = Pick<Pulse, 'id' | 'lastSeen' | 'status' | 'remoteAddr'>;

export interface PulseWalk {
  /** How many pulses the whole walk visits. */
  readonly count: number;
  /** The next pulses, at most `limit`; none once all were visited. Use them before anything changes. */
  take(limit: number): readonly PulseSight[];
  /** Call before an active pulse changes, leaves its place or stops being active. */
  keep(pulse: Pulse): void;
  /** No pulse is kept any more. */
  end(): void;
}

/** Walks from `newest` to the oldest, and to what was kept last. */
export function createPulseWalk(
  newest: Pulse | null,
  count: number,
  forget: () => void,
): PulseWalk {
  let next = newest;
  let kept: PulseSight[] = [];

  function takeFromList(limit: number): PulseSight[] {
    const taken: PulseSight[] = [];
    for (; next !== null && taken.length < limit; next = next.older) taken.push(next);
    return taken;
  }

  return {
    count,
    take(limit) {
      if (next !== null) return takeFromList(limit);
      const taken = kept.slice(-limit);
      kept.length -= taken.length;
      return taken;
    },
    keep(pulse) {
      // What stands before the next one was visited, or has only come to be active since.
      if (next === null || pulse.place > next.place) return;
      const { id, lastSeen, status, remoteAddr } = pulse;
      kept.push({ id, lastSeen, status, remoteAddr });
      if (pulse === next) next = pulse.older;
    },
    end() {
      next = null;
      kept = [];
      forget();
    },
  };
}
