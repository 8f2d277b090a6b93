/** Counts the failed authentications of the last hour in one-minute buckets, so its size does not depend on their number. */
import type { Runtime } from '../../base/runtime.ts';

export interface FailureWindow {
  /** Counts a refusal if its audit event is a failed authentication. */
  note(event: string): void;
  lastHour(): { readonly operator: number; readonly node: number };
}

const MINUTE = 60_000;
const MINUTES = 60;

interface Minute {
  number: number;
  operator: number;
  node: number;
}

export function createFailureWindow(elapsed: Runtime['elapsed']): FailureWindow {
  const minutes: Minute[] = Array.from({ length: MINUTES }, () => noneIn(Number.NEGATIVE_INFINITY));

  function current(): Minute {
    const number = Math.floor(elapsed() / MINUTE);
    const slot = number % MINUTES;
    const held = minutes[slot];
    if (held?.number === number) return held;
    const fresh = noneIn(number);
    minutes[slot] = fresh;
    return fresh;
  }

  return {
    note(event) {
      if (event === 'admin_auth_failed') current().operator += 1;
      if (event === 'node_auth_failed') current().node += 1;
    },
    lastHour() {
      const oldest = Math.floor(elapsed() / MINUTE) - MINUTES;
      const within = minutes.filter(({ number }) => number > oldest);
      const sum = (kind: 'operator' | 'node') =>
        within.reduce((total, minute) => total + minute[kind], 0);
      return { operator: sum('operator'), node: sum('node') };
    },
  };
}

function noneIn(number: number): Minute {
  return { number, operator: 0, node: 0 };
}
