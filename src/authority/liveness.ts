/**
 * Liveness of certificates, in memory at once and flushed in batches: the one thing that is not durable
 * when it is acknowledged. Certificates that are active stand in a list ordered by last contact, so a
 * heartbeat, the active count and dropping those gone quiet all cost the same for any fleet size.
 */
import type { StoredLiveness } from '../store/store.ts';
import { createPulseWalk, type PulseWalk } from './pulse-walk.ts';

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
  /** Grows along the list of active pulses, from the oldest to the newest. */
  place: number;
  older: Pulse | null;
  newer: Pulse | null;
}

export type StoredContact = Omit<StoredLiveness, 'id'>;

export interface Liveness {
  touch(id: string, contact: Contact): void;
  /** Keeps the newest timestamp the node signed, so that nothing older is accepted after a restart. */
  noteSigned(id: string, signedAt: number): void;
  /** The newest timestamp noted so far, by this process or before a restart; 0 when there is none. */
  newestSignedAt(id: string): number;
  /** Takes a stored contact. Call in the order of the ids, before anything else; then `activate`. */
  restore(id: string, contact: StoredContact): Pulse;
  /** Lists restored pulses as active, in the order of their last contact. */
  activate(heardOf: Pulse[]): void;
  /** The certificate no longer counts as active until its next contact. */
  retire(id: string): void;
  activeCount(now: number): number;
  /** Starts a walk over the certificates that are active now. */
  walk(now: number): PulseWalk;
  /** Rows changed since the last call. */
  takeDirty(): StoredLiveness[];
}

export function createLiveness(activeWindowMs: number): Liveness {
  /** Restored pulses in the order of their ids, which costs a large fleet less than filling a map. */
  const restored: Pulse[] = [];
  const pulses = new Map<string, Pulse>();
  let oldest: Pulse | null = null;
  let newest: Pulse | null = null;
  let count = 0;
  let lastPlace = 0;
  const walks = new Set<PulseWalk>();
  let dirty: Pulse[] = [];

  function find(id: string): Pulse | undefined {
    const known = pulses.get(id);
    if (known !== undefined) return known;
    const pulse = findById(restored, id);
    if (pulse !== undefined) pulses.set(id, pulse);
    return pulse;
  }

  function pulseOf(id: string): Pulse {
    const known = find(id);
    if (known !== undefined) return known;
    const created = newPulse(id);
    pulses.set(id, created);
    return created;
  }

  function append(pulse: Pulse): void {
    lastPlace += 1;
    pulse.active = true;
    pulse.place = lastPlace;
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

  /** Call before an active pulse changes or leaves its place. */
  function keepForWalks(pulse: Pulse): void {
    if (walks.size === 0 || !pulse.active) return;
    for (const walk of walks) walk.keep(pulse);
  }

  function markDirty(pulse: Pulse): void {
    if (pulse.dirty) return;
    pulse.dirty = true;
    dirty.push(pulse);
  }

  function dropQuiet(now: number): void {
    while (oldest !== null && now - oldest.lastSeen >= activeWindowMs) {
      keepForWalks(oldest);
      unlink(oldest);
    }
  }

  return {
    touch(id, { at, status, remoteAddr }) {
      const pulse = pulseOf(id);
      keepForWalks(pulse);
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
    newestSignedAt: (id) => find(id)?.newestSignedAt ?? 0,
    restore(id, contact) {
      const pulse = newPulse(id, contact);
      restored.push(pulse);
      return pulse;
    },
    activate(heardOf) {
      for (const pulse of heardOf.sort((a, b) => a.lastSeen - b.lastSeen)) append(pulse);
    },
    retire(id) {
      const pulse = find(id);
      if (!pulse?.active) return;
      keepForWalks(pulse);
      unlink(pulse);
    },
    activeCount(now) {
      dropQuiet(now);
      return count;
    },
    walk(now) {
      dropQuiet(now);
      const walk = createPulseWalk(newest, count, () => walks.delete(walk));
      walks.add(walk);
      return walk;
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

const NO_CONTACT: StoredContact = { lastSeen: 0, status: '', remoteAddr: '', newestSignedAt: 0 };

function newPulse(
  id: string,
  { lastSeen, status, remoteAddr, newestSignedAt }: StoredContact = NO_CONTACT,
): Pulse {
  return {
    id,
    lastSeen,
    status,
    remoteAddr,
    newestSignedAt,
    active: false,
    dirty: false,
    place: 0,
    older: null,
    newer: null,
  };
}

/** Binary search: the pulses are sorted by id. */
function findById(pulses: readonly Pulse[], id: string): Pulse | undefined {
  let from = 0;
  let to = pulses.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const pulse = pulses[middle];
    if (pulse === undefined || pulse.id === id) return pulse;
    if (pulse.id < id) from = middle + 1;
    else to = middle;
  }
  return undefined;
}
