/**
 * Liveness of certificates, in memory at once and flushed in batches: the one thing that is not durable
 * when it is acknowledged. Certificates that are active stand in a list ordered by last contact, so a
 * heartbeat, the active count and dropping those gone quiet all cost the same for any fleet size.
 */
import type { StoredLiveness } from '../../store/store.ts';
import { createRosterWalk, type RosterWalk } from './roster-walk.ts';

export interface Contact {
  readonly at: number;
  readonly status: string;
  readonly remoteAddr: string;
}

/** Last contact with one certificate. Instants are milliseconds since the epoch. */
export interface LastContact {
  readonly id: string;
  lastSeen: number;
  status: string;
  remoteAddr: string;
  newestSignedAt: number;
  active: boolean;
  dirty: boolean;
  /** Grows along the list of active contacts, from the oldest to the newest. */
  place: number;
  older: LastContact | null;
  newer: LastContact | null;
}

export type StoredContact = Omit<StoredLiveness, 'id'>;

export interface Liveness {
  touch(id: string, contact: Contact): void;
  /** Keeps the newest timestamp the node signed, so that nothing older is accepted after a restart. */
  noteSigned(id: string, signedAt: number): void;
  /** The newest timestamp noted so far, by this process or before a restart; 0 when there is none. */
  newestSignedAt(id: string): number;
  /** Takes a stored contact. Call in the order of the ids, before anything else; then `activate`. */
  restore(id: string, contact: StoredContact): LastContact;
  /** Lists restored contacts as active, in the order of their last contact. */
  activate(heardOf: LastContact[]): void;
  /** The certificate no longer counts as active until its next contact. */
  retire(id: string): void;
  /** The clock was set back to `now`: nobody was heard of later. */
  clockSetBack(now: number): void;
  activeCount(now: number): number;
  /** Starts a walk over the certificates that are active now. */
  walk(now: number): RosterWalk;
  /** Rows changed since the last call. */
  takeDirty(): StoredLiveness[];
}

export function createLiveness(activeWindowMs: number): Liveness {
  /** Restored contacts in the order of their ids, which costs a large fleet less than filling a map. */
  const restored: LastContact[] = [];
  const contacts = new Map<string, LastContact>();
  let oldest: LastContact | null = null;
  let newest: LastContact | null = null;
  let count = 0;
  let lastPlace = 0;
  const walks = new Set<RosterWalk>();
  let dirty: LastContact[] = [];

  function find(id: string): LastContact | undefined {
    const known = contacts.get(id);
    if (known !== undefined) return known;
    const contact = findById(restored, id);
    if (contact !== undefined) contacts.set(id, contact);
    return contact;
  }

  function contactOf(id: string): LastContact {
    const known = find(id);
    if (known !== undefined) return known;
    const created = newContact(id);
    contacts.set(id, created);
    return created;
  }

  function append(contact: LastContact): void {
    lastPlace += 1;
    contact.active = true;
    contact.place = lastPlace;
    contact.older = newest;
    contact.newer = null;
    if (newest === null) oldest = contact;
    else newest.newer = contact;
    newest = contact;
    count += 1;
  }

  function unlink(contact: LastContact): void {
    if (contact.older === null) oldest = contact.newer;
    else contact.older.newer = contact.newer;
    if (contact.newer === null) newest = contact.older;
    else contact.newer.older = contact.older;
    contact.active = false;
    contact.older = null;
    contact.newer = null;
    count -= 1;
  }

  /** Call before an active contact changes or leaves its place. */
  function keepForWalks(contact: LastContact): void {
    if (walks.size === 0 || !contact.active) return;
    for (const walk of walks) walk.keep(contact);
  }

  function markDirty(contact: LastContact): void {
    if (contact.dirty) return;
    contact.dirty = true;
    dirty.push(contact);
  }

  function dropQuiet(now: number): void {
    while (oldest !== null && now - oldest.lastSeen >= activeWindowMs) {
      keepForWalks(oldest);
      unlink(oldest);
    }
  }

  return {
    touch(id, { at, status, remoteAddr }) {
      const contact = contactOf(id);
      keepForWalks(contact);
      // The list stays ordered even when the wall clock is set back.
      contact.lastSeen = newest === null ? at : Math.max(at, newest.lastSeen);
      contact.status = status;
      contact.remoteAddr = remoteAddr;
      if (contact !== newest) {
        if (contact.active) unlink(contact);
        append(contact);
      }
      markDirty(contact);
    },
    noteSigned(id, signedAt) {
      const contact = contactOf(id);
      if (signedAt <= contact.newestSignedAt) return;
      contact.newestSignedAt = signedAt;
      markDirty(contact);
    },
    newestSignedAt: (id) => find(id)?.newestSignedAt ?? 0,
    restore(id, stored) {
      const contact = newContact(id, stored);
      restored.push(contact);
      return contact;
    },
    activate(heardOf) {
      for (const contact of heardOf.sort((a, b) => a.lastSeen - b.lastSeen)) append(contact);
    },
    retire(id) {
      const contact = find(id);
      if (!contact?.active) return;
      keepForWalks(contact);
      unlink(contact);
    },
    clockSetBack(now) {
      for (let contact = newest; contact !== null; contact = contact.older) {
        if (contact.lastSeen <= now) return;
        keepForWalks(contact);
        contact.lastSeen = now;
        markDirty(contact);
      }
    },
    activeCount(now) {
      dropQuiet(now);
      return count;
    },
    walk(now) {
      dropQuiet(now);
      const walk = createRosterWalk(newest, count, () => walks.delete(walk));
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
      for (const contact of dirty) contact.dirty = false;
      dirty = [];
      return rows;
    },
  };
}

const NO_CONTACT: StoredContact = { lastSeen: 0, status: '', remoteAddr: '', newestSignedAt: 0 };

function newContact(
  id: string,
  { lastSeen, status, remoteAddr, newestSignedAt }: StoredContact = NO_CONTACT,
): LastContact {
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

/** Binary search: the contacts are sorted by id. */
function findById(contacts: readonly LastContact[], id: string): LastContact | undefined {
  let from = 0;
  let to = contacts.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    const contact = contacts[middle];
    if (contact === undefined || contact.id === id) return contact;
    if (contact.id < id) from = middle + 1;
    else to = middle;
  }
  return undefined;
}
