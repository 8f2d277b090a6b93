/**
 * Liveness of certificates, in memory at once and flushed in batches: the only state that is not durable
 * when it is acknowledged. Active certificates are in a list ordered by last contact, so a heartbeat, the
 * active count and dropping silent certificates cost the same for any fleet size.
 */
import { detached } from '../../base/detached.ts';
import type { StoredLiveness } from '../../store/store.ts';
import type { CertificateNumbers } from '../tables/certificate-numbers.ts';
import { NONE } from '../tables/text-index.ts';
import { createContactColumns, type StoredContact } from './contact-columns.ts';
import {
  type ContactList,
  type ContactView,
  createRosterWalk,
  type RosterWalk,
} from './rosters.ts';

export interface Contact {
  readonly at: number;
  readonly status: string;
  readonly remoteAddr: string;
}

/** A contact as it is shown. */
export interface LastContact extends Omit<ContactView, 'id'> {
  readonly isActive: boolean;
}

export interface Liveness {
  touch(id: string, contact: Contact): void;
  /** Records the newest timestamp that the node signed, so that nothing older is accepted after a restart. */
  noteSigned(id: string, signedAt: number): void;
  /** The newest timestamp recorded so far, by this process or before a restart; 0 when there is none. */
  newestSignedAt(id: string): number;
  /** Restores a stored contact and returns its number. Call before anything else; then `activate`. */
  restore(id: string, contact: StoredContact): number;
  /** Lists restored contacts as active, ordered by last contact. */
  activate(heardOf: number[]): void;
  /**
   * A contact that another process has stored, or null for the one that is known, of a certificate that counts as
   * active or does not. Call `putInOrder` before anything else but this.
   */
  follow(id: string, contact: StoredContact | null, isActive: boolean): void;
  /** Orders the active contacts after calls of `follow`. */
  putInOrder(): void;
  /** The certificate no longer counts as active until its next contact. */
  retire(id: string): void;
  /** A successor was decided; call `retireRenewed` when it is stored. */
  markRenewed(id: string): void;
  /** Retires the certificate, unless it was heard of since it was marked. */
  retireRenewed(id: string): void;
  /** The clock was set back to `now`: nobody was heard of later, and who had gone quiet stays quiet. */
  clockSetBack(now: number): void;
  /** The certificate is being removed: its contact is dropped and no longer written. */
  remove(id: string): void;
  /** When the contact that was heard of last was heard of; 0 when nobody is active. */
  latest(): number;
  activeCount(now: number): number;
  /** When the certificate was last heard of, in milliseconds since the epoch; 0 when never. */
  lastSeen(id: string): number;
  /** What it reported then; empty when it was never heard of. */
  statusOf(id: string): string;
  /** The last contact of a certificate that was committed. */
  contactOf(id: string, now: number): LastContact;
  /** Starts a walk over the currently active certificates. */
  walk(now: number): RosterWalk;
  /**
   * Rows changed since the last call. Pass them to the store in the same turn: a removal that is decided
   * later must reach it later.
   */
  takeDirty(): StoredLiveness[];
}

/** The place of a contact that is not listed. */
const NOT_ACTIVE = 0;

export function createLiveness(
  activeWindowMs: number,
  numbers: CertificateNumbers,
  rowsBits?: number,
): Liveness {
  const { of: blockOf, rowOf } = createContactColumns(rowsBits);
  let oldest = NONE;
  let newest = NONE;
  let count = 0;
  let lastPlace = NOT_ACTIVE;
  const walks = new Set<RosterWalk>();
  let dirty: number[] = [];
  /** False since a contact was followed that is older than the newest. */
  let isOrdered = true;
  /** Contacts with a later place were added after the list was last in order. */
  let lastOrdered = NOT_ACTIVE;

  const list: ContactList = {
    newest: () => newest,
    olderThan: (contact) => blockOf(contact).older[rowOf(contact)] as number,
    placeOf: (contact) => blockOf(contact).places[rowOf(contact)] as number,
    view(contact) {
      const { lastSeen, statuses, remoteAddrs } = blockOf(contact);
      const row = rowOf(contact);
      return {
        id: numbers.idOf(contact) ?? '',
        lastSeen: lastSeen[row] as number,
        status: statuses[row] as string,
        remoteAddr: remoteAddrs[row] as string,
      };
    },
  };

  function isActive(contact: number): boolean {
    return list.placeOf(contact) !== NOT_ACTIVE;
  }

  /** Links the two as neighbors; `NONE` makes the other one an end of the list. */
  function link(older: number, newer: number): void {
    if (older === NONE) oldest = newer;
    else blockOf(older).newer[rowOf(older)] = newer;
    if (newer === NONE) newest = older;
    else blockOf(newer).older[rowOf(newer)] = older;
  }

  function append(contact: number): void {
    lastPlace += 1;
    blockOf(contact).places[rowOf(contact)] = lastPlace;
    link(newest, contact);
    link(contact, NONE);
    count += 1;
  }

  function activate(heardOf: number[]): void {
    for (const contact of heardOf.sort((a, b) => lastSeenOf(a) - lastSeenOf(b))) append(contact);
    lastOrdered = lastPlace;
  }

  /** Takes the contacts from the list that may not be in their place: those that were added, and all newer ones. */
  function takeUnordered(): number[] {
    const isAdded = (contact: number) => contact !== NONE && list.placeOf(contact) > lastOrdered;
    let earliest = Number.POSITIVE_INFINITY;
    for (let contact = newest; isAdded(contact); contact = list.olderThan(contact)) {
      earliest = Math.min(earliest, lastSeenOf(contact));
    }
    const taken: number[] = [];
    while (newest !== NONE && (isAdded(newest) || lastSeenOf(newest) > earliest)) {
      taken.push(newest);
      unlink(newest);
    }
    return taken;
  }

  function unlink(contact: number): void {
    const block = blockOf(contact);
    const row = rowOf(contact);
    link(block.older[row] as number, block.newer[row] as number);
    block.places[row] = NOT_ACTIVE;
    count -= 1;
  }

  /** Call before an active contact changes or moves. */
  function keepForWalks(contact: number): void {
    if (walks.size === 0 || !isActive(contact)) return;
    for (const walk of walks) walk.keep(contact);
  }

  function markDirty(contact: number): void {
    const block = blockOf(contact);
    const row = rowOf(contact);
    if (block.dirty[row] === 1) return;
    block.dirty[row] = 1;
    dirty.push(contact);
  }

  function retire(contact: number): void {
    if (contact === NONE || !isActive(contact)) return;
    keepForWalks(contact);
    unlink(contact);
  }

  function writeStored(contact: number, stored: StoredContact): void {
    write(contact, stored.lastSeen, stored.status, stored.remoteAddr);
    blockOf(contact).newestSignedAt[rowOf(contact)] = stored.newestSignedAt;
  }

  function lastSeenOf(contact: number): number {
    return blockOf(contact).lastSeen[rowOf(contact)] as number;
  }

  function write(contact: number, lastSeen: number, status: string, remoteAddr: string): void {
    const block = blockOf(contact);
    const row = rowOf(contact);
    block.lastSeen[row] = lastSeen;
    block.renewed[row] = 0;
    // Usually equal to the stored text; keeping that one lets the text of the heartbeat be collected.
    if (block.statuses[row] !== status) block.statuses[row] = detached(status);
    if (block.remoteAddrs[row] !== remoteAddr) block.remoteAddrs[row] = detached(remoteAddr);
  }

  function putBack(contact: number, latest: number): void {
    const { lastSeen } = blockOf(contact);
    const row = rowOf(contact);
    if ((lastSeen[row] as number) <= latest) return;
    lastSeen[row] = latest;
    markDirty(contact);
  }

  function noteSigned(contact: number, signedAt: number): void {
    const { newestSignedAt } = blockOf(contact);
    const row = rowOf(contact);
    if (signedAt <= (newestSignedAt[row] as number)) return;
    newestSignedAt[row] = signedAt;
    markDirty(contact);
  }

  function dropQuiet(now: number): void {
    while (oldest !== NONE && now - lastSeenOf(oldest) >= activeWindowMs) retire(oldest);
  }

  /** Null when the contact was removed since it changed, or was returned already. */
  function takeRow(contact: number): StoredLiveness | null {
    const block = blockOf(contact);
    const row = rowOf(contact);
    if (block.dirty[row] === 0) return null;
    block.dirty[row] = 0;
    return { ...list.view(contact), newestSignedAt: block.newestSignedAt[row] as number };
  }

  return {
    touch(id, { at, status, remoteAddr }) {
      const contact = numbers.take(id);
      keepForWalks(contact);
      // The list stays ordered even when the wall clock is set back.
      const lastSeen = newest === NONE ? at : Math.max(at, lastSeenOf(newest));
      write(contact, lastSeen, status, remoteAddr);
      if (contact !== newest) {
        if (isActive(contact)) unlink(contact);
        append(contact);
      }
      markDirty(contact);
    },
    noteSigned(id, signedAt) {
      const contact = numbers.find(id);
      if (contact !== NONE) noteSigned(contact, signedAt);
    },
    newestSignedAt(id) {
      const contact = numbers.find(id);
      return contact === NONE ? 0 : (blockOf(contact).newestSignedAt[rowOf(contact)] as number);
    },
    restore(id, stored) {
      const contact = numbers.take(id);
      writeStored(contact, stored);
      return contact;
    },
    follow(id, stored, isNowActive) {
      const contact = numbers.take(id);
      const isMoved = stored !== null && stored.lastSeen !== lastSeenOf(contact);
      if (stored !== null) writeStored(contact, stored);
      if (!isNowActive) retire(contact);
      else if (isMoved || !isActive(contact)) {
        if (isActive(contact)) unlink(contact);
        if (newest !== NONE && lastSeenOf(contact) < lastSeenOf(newest)) isOrdered = false;
        append(contact);
      }
    },
    putInOrder() {
      // Almost in order already, which sorting makes use of.
      if (!isOrdered) activate(takeUnordered().reverse());
      isOrdered = true;
      lastOrdered = lastPlace;
    },
    activate,
    retire: (id) => retire(numbers.find(id)),
    markRenewed(id) {
      const contact = numbers.find(id);
      if (contact !== NONE) blockOf(contact).renewed[rowOf(contact)] = 1;
    },
    retireRenewed(id) {
      const contact = numbers.find(id);
      if (contact !== NONE && blockOf(contact).renewed[rowOf(contact)] === 1) retire(contact);
    },
    remove(id) {
      const contact = numbers.find(id);
      if (contact === NONE) return;
      retire(contact);
      write(contact, 0, '', '');
      const block = blockOf(contact);
      const row = rowOf(contact);
      block.newestSignedAt[row] = 0;
      block.dirty[row] = 0;
    },
    clockSetBack(now) {
      for (let contact = newest; contact !== NONE; contact = list.olderThan(contact)) {
        if (lastSeenOf(contact) <= now) break;
        keepForWalks(contact);
        putBack(contact, now);
      }
      // Under the new time a dropped contact may look recent, and a restart would list it again.
      for (let contact = 1; contact <= numbers.highest; contact += 1) {
        if (!isActive(contact)) putBack(contact, now - activeWindowMs);
      }
    },
    latest: () => (newest === NONE ? 0 : lastSeenOf(newest)),
    activeCount(now) {
      dropQuiet(now);
      return count;
    },
    lastSeen(id) {
      const contact = numbers.find(id);
      return contact === NONE ? 0 : lastSeenOf(contact);
    },
    statusOf(id) {
      const contact = numbers.find(id);
      return contact === NONE ? '' : (blockOf(contact).statuses[rowOf(contact)] as string);
    },
    contactOf(id, now) {
      dropQuiet(now);
      const contact = numbers.find(id);
      const { lastSeen, status, remoteAddr } = list.view(contact);
      return { lastSeen, status, remoteAddr, isActive: isActive(contact) };
    },
    walk(now) {
      dropQuiet(now);
      const walk = createRosterWalk(list, count, () => walks.delete(walk));
      walks.add(walk);
      return walk;
    },
    takeDirty() {
      const rows = dirty.map(takeRow).filter((row) => row !== null);
      dirty = [];
      return rows;
    },
  };
}
