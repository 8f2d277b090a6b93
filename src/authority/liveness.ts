/**
 * Liveness of certificates, in memory at once and flushed in batches: the one thing that is not durable
 * when it is acknowledged. Certificates that are active stand in a list ordered by last contact, so a
 * heartbeat, the active count and dropping those gone quiet all cost the same for any fleet size.
 */
import type { StoredLiveness } from '../store/store.ts';

export interface Contact {
  readonly at: number;
  readonly status: string;
  readonly remoteAddr: string;
}

/** Last contact with one certificate. Instants are milliseconds since the epoch. */
export interface Pulse {
  readonly id: string;
  lastSeen: number;
  status: string;
  remoteAddr: string;
  newestSignedAt: number;
  active: boolean;
  dirty: boolean;
  older: Pulse | null;
  newer: Pulse | null;
}

export interface Liveness {
  touch(id: string, contact: Contact): void;
  /** Keeps the newest timestamp the node signed, so that nothing older is accepted after a restart. */
  noteSigned(id: string, signedAt: number): void;
  /** Takes a stored contact; call in the order of last contact. */
  restore(row: StoredLiveness, active: boolean): void;
  /** The certificate no longer counts as active until its next contact. */
  retire(id: string): void;
  activeCount(now: number): number;
  /** Active certificates, the one heard of last first. */
  active(now: number): Generator<Pulse>;
  /** Rows changed since the last call. */
  takeDirty(): StoredLiveness[];
}

export function createLiveness(activeWindowMs: number): Liveness {
  const pulses = new Map<string, Pulse>();
  let oldest: Pulse | null = null;
  let newest: Pulse | null = null;
  let count = 0;
  let dirty: Pulse[] = [];

  function pulseOf(id: string): Pulse {
    const known = pulses.get(id);
    if (known !== undefined) return known;
    const created: Pulse = {
      id,
      lastSeen: 0,
      status: '',
      remoteAddr: '',
      newestSignedAt: 0,
      active: false,
      dirty: false,
      older: null,
      newer: null,
    };
    pulses.set(id, created);
    return created;
  }

  function append(pulse: Pulse): void {
    pulse.active = true;
    pulse.older = newest;
    pulse.newer = null;
    if (newest === null) oldest = pulse;
    else newest.newer = pulse;
    newest = pulse;
    count += 1;
  }

  function unlink(pulse: Pulse): void {
    if (pulse.older === null) oldest = pulse.newer;
    else pulse.older.newer = pulse.newer;
    if (pulse.newer === null) newest = pulse.older;
    else pulse.newer.older = pulse.older;
    pulse.active = false;
    pulse.older = null;
    pulse.newer = null;
    count -= 1;
  }

  function markDirty(pulse: Pulse): void {
    if (pulse.dirty) return;
    pulse.dirty = true;
    dirty.push(pulse);
  }

  function dropQuiet(now: number): void {
    while (oldest !== null && now - oldest.lastSeen >= activeWindowMs) unlink(oldest);
  }

  return {
    touch(id, { at, status, remoteAddr }) {
      const pulse = pulseOf(id);
      // The list stays ordered even when the wall clock is set back.
      pulse.lastSeen = newest === null ? at : Math.max(at, newest.lastSeen);
      pulse.status = status;
      pulse.remoteAddr = remoteAddr;
      if (pulse !== newest) {
        if (pulse.active) unlink(pulse);
        append(pulse);
      }
      markDirty(pulse);
    },
    noteSigned(id, signedAt) {
      const pulse = pulseOf(id);
      if (signedAt <= pulse.newestSignedAt) return;
      pulse.newestSignedAt = signedAt;
      markDirty(pulse);
    },
    restore(row, active) {
      const pulse = pulseOf(row.id);
      Object.assign(pulse, row);
      if (active) append(pulse);
    },
    retire(id) {
      const pulse = pulses.get(id);
      if (pulse?.active) unlink(pulse);
    },
    activeCount(now) {
      dropQuiet(now);
      return count;
    },
    *active(now) {
      dropQuiet(now);
      for (let pulse = newest; pulse !== null; pulse = pulse.older) yield pulse;
    },
    takeDirty() {
      const rows = dirty.map(({ id, lastSeen, status, remoteAddr, newestSignedAt }) => ({
        id,
        lastSeen,
        status,
        remoteAddr,
        newestSignedAt,
      }));
      for (const pulse of dirty) pulse.dirty = false;
      dirty = [];
      return rows;
    },
  };
}
