/**
 * Liveness of certificates, updated in memory immediately and flushed in batches. It is the only state that is not
 * durable when it is acknowledged. Active certificates form a list ordered by last contact, so recording a heartbeat,
 * counting active nodes and dropping silent ones cost the same for any fleet size. What was dropped forms a second list
 * in the same columns, so that the few silent nodes of a large fleet are found without looking at all of it.
 */
import { detached } from '../../base/detached.ts';
import { reportsHealth } from '../../protocol/rows/certificate.ts';
import type { StoredLiveness } from '../../store/store.ts';
import { type CertificateNumbers, createBlocks, NONE } from '../subjects/numbering.ts';
import { NOT_HEARD } from './known-chains.ts';
import { type ContactList, type ContactView, createRosterWalk, type RosterWalk } from './roster.ts';

export interface Contact {
  readonly at: number;
  readonly status: string;
  readonly remoteAddr: string;
  /** The chain of authority keys that the node knows, as a number of `known-chains.ts`. */
  readonly chain: number;
}

/** A contact as shown to operators. */
export interface LastContact extends Omit<ContactView, 'id'> {
  readonly isActive: boolean;
}

export type Liveness = ReturnType<typeof createLiveness>;

/** The places of contacts that are not in the list of active ones: in that of quiet ones, or in none. */
const QUIET = -1;
const UNLISTED = 0;

/** The ends of a list of contacts, by number, and its length. */
interface Chain {
  oldest: number;
  newest: number;
  count: number;
}

export function createLiveness(
  activeWindowMs: number,
  numbers: CertificateNumbers,
  rowsBits?: number,
) {
  const { of: blockOf, rowOf } = createBlocks((rows) => new ContactBlock(rows), rowsBits);
  const active: Chain = { oldest: NONE, newest: NONE, count: 0 };
  /** Those that were active until they were not heard from for too long; all silent certificates are among them. */
  const quiet: Chain = { oldest: NONE, newest: NONE, count: 0 };
  /** Those whose last report was not healthy. */
  const unwell = new Set<number>();
  let lastPlace = UNLISTED;
  const walks = new Set<RosterWalk>();
  const dirty: number[] = [];
  /** False after `follow` has appended a contact that is older than the newest. */
  let isOrdered = true;
  /** Contacts with a higher place were added after the list was last sorted. */
  let lastOrdered = UNLISTED;
  /**
   * Stored times that are later than now, because the clock is behind, or was ahead when they were stored. What is
   * stored stays, until the next contact; meanwhile, the certificate counts as last seen when this process began.
   */
  const later = new Map<number, number>();
  /** Contacts from this time on were recorded by the clock as it is set now. */
  let recordedFrom = 0;

  const list: ContactList = {
    newest: () => active.newest,
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
    return list.placeOf(contact) > UNLISTED;
  }

  /** Links two contacts as neighbors; if one is `NONE`, the other becomes an end of the list. */
  function link(chain: Chain, older: number, newer: number): void {
    if (older === NONE) chain.oldest = newer;
    else blockOf(older).newer[rowOf(older)] = newer;
    if (newer === NONE) chain.newest = older;
    else blockOf(newer).older[rowOf(newer)] = older;
  }

  function append(contact: number, chain = active): void {
    if (chain === active) lastPlace += 1;
    blockOf(contact).places[rowOf(contact)] = chain === active ? lastPlace : QUIET;
    link(chain, chain.newest, contact);
    link(chain, contact, NONE);
    chain.count += 1;
  }

  function inOrder(contacts: number[]): number[] {
    return contacts.sort((a, b) => lastSeenOf(a) - lastSeenOf(b));
  }

  function activate(heardOf: number[]): void {
    for (const contact of inOrder(heardOf)) append(contact);
    lastOrdered = lastPlace;
  }

  /** Removes the contacts that may be out of order from the list: the added ones, and any newer than one of those. */
  function takeUnordered(): number[] {
    const isAdded = (contact: number) => contact !== NONE && list.placeOf(contact) > lastOrdered;
    let earliest = Number.POSITIVE_INFINITY;
    for (let contact = active.newest; isAdded(contact); contact = list.olderThan(contact)) {
      earliest = Math.min(earliest, lastSeenOf(contact));
    }
    const taken: number[] = [];
    const isTaken = (contact: number) => isAdded(contact) || lastSeenOf(contact) > earliest;
    while (active.newest !== NONE && isTaken(active.newest)) {
      taken.push(active.newest);
      unlink(active.newest);
    }
    return taken;
  }

  /** Removes the contact from the list that it is in, if any. */
  function unlink(contact: number): void {
    const block = blockOf(contact);
    const row = rowOf(contact);
    if (block.places[row] === UNLISTED) return;
    const chain = block.places[row] === QUIET ? quiet : active;
    link(chain, block.older[row] as number, block.newer[row] as number);
    block.places[row] = UNLISTED;
    chain.count -= 1;
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
    if (contact === NONE) return;
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
    // The texts are usually equal; keeping the stored one allows the heartbeat's text to be garbage collected.
    if (block.statuses[row] !== status) {
      block.statuses[row] = detached(status);
      if (reportsHealth(status)) unwell.delete(contact);
      else unwell.add(contact);
    }
    if (block.remoteAddrs[row] !== remoteAddr) block.remoteAddrs[row] = detached(remoteAddr);
  }

  function setLastSeen(contact: number, at: number): void {
    blockOf(contact).lastSeen[rowOf(contact)] = at;
  }

  function showAtMost(now: number): void {
    for (let contact = 1; contact <= numbers.highest; contact += 1) {
      const at = lastSeenOf(contact);
      if (at <= now) continue;
      if (!later.has(contact)) later.set(contact, at);
      setLastSeen(contact, now);
    }
  }

  /** Moves what was recorded since `recordedFrom`, and what is shown in the place of a later time. */
  function moveRecorded(byMs: number): void {
    for (let contact = 1; contact <= numbers.highest; contact += 1) {
      const at = lastSeenOf(contact);
      if (at < recordedFrom) continue;
      setLastSeen(contact, at + byMs);
      if (!later.has(contact)) markDirty(contact);
    }
  }

  function sortActive(): void {
    const taken: number[] = [];
    for (let contact = active.newest; contact !== NONE; contact = list.olderThan(contact)) {
      taken.push(contact);
    }
    for (const contact of taken) unlink(contact);
    // The contacts are almost in order already, which makes sorting fast.
    activate(taken.reverse());
  }

  function noteSigned(contact: number, signedAt: number): void {
    const { newestSignedAt } = blockOf(contact);
    const row = rowOf(contact);
    if (signedAt <= (newestSignedAt[row] as number)) return;
    newestSignedAt[row] = signedAt;
    markDirty(contact);
  }

  function dropQuiet(now: number): void {
    while (active.oldest !== NONE && now - lastSeenOf(active.oldest) >= activeWindowMs) {
      const { oldest } = active;
      retire(oldest);
      append(oldest, quiet);
    }
  }

  /** Null if the contact was removed after it changed, or was already returned. */
  function takeRow(contact: number): StoredLiveness | null {
    const block = blockOf(contact);
    const row = rowOf(contact);
    if (block.dirty[row] === 0) return null;
    block.dirty[row] = 0;
    const { lastSeen, ...shown } = list.view(contact);
    const newestSignedAt = block.newestSignedAt[row] as number;
    return { ...shown, lastSeen: later.get(contact) ?? lastSeen, newestSignedAt };
  }

  function contactAt(contact: number, now: number): LastContact {
    dropQuiet(now);
    const { lastSeen, status, remoteAddr } = list.view(contact);
    return { lastSeen, status, remoteAddr, isActive: isActive(contact) };
  }

  return {
    touch(id: string, { at, status, remoteAddr, chain }: Contact) {
      const contact = numbers.take(id);
      keepForWalks(contact);
      later.delete(contact);
      // Keeps the list ordered even if the wall clock is set back.
      const { newest } = active;
      const lastSeen = newest === NONE ? at : Math.max(at, lastSeenOf(newest));
      write(contact, lastSeen, status, remoteAddr);
      blockOf(contact).chains[rowOf(contact)] = chain;
      if (contact !== newest) {
        unlink(contact);
        append(contact);
      }
      markDirty(contact);
    },
    /** Records the newest timestamp that the node signed, so that nothing older is accepted after a restart. */
    noteSigned(id: string, signedAt: number) {
      const contact = numbers.find(id);
      if (contact !== NONE) noteSigned(contact, signedAt);
    },
    /** The newest timestamp recorded so far, by this process or before a restart; 0 if there is none. */
    newestSignedAt(id: string): number {
      const contact = numbers.find(id);
      return contact === NONE ? 0 : (blockOf(contact).newestSignedAt[rowOf(contact)] as number);
    },
    /** Restores a stored contact and returns its number. Call before anything else, then call `activate`. */
    restore(id: string, stored: StoredContact): number {
      const contact = numbers.take(id);
      writeStored(contact, stored);
      return contact;
    },
    /**
     * Applies a contact that another process stored, or keeps the known contact if `contact` is null, and updates whether
     * the certificate is active. After one or more calls, call `putInOrder` before anything else.
     */
    follow(id: string, stored: StoredContact | null, use: Use) {
      const contact = numbers.take(id);
      const isMoved = stored !== null && stored.lastSeen !== lastSeenOf(contact);
      if (stored !== null) writeStored(contact, stored);
      if (use !== 'active') {
        retire(contact);
        if (use === 'quiet') append(contact, quiet);
      } else if (isMoved || !isActive(contact)) {
        unlink(contact);
        const { newest } = active;
        if (newest !== NONE && lastSeenOf(contact) < lastSeenOf(newest)) isOrdered = false;
        append(contact);
      }
    },
    /** Sorts the active contacts after calls to `follow`. */
    putInOrder() {
      // The contacts are almost in order already, which makes sorting fast.
      if (!isOrdered) activate(takeUnordered().reverse());
      isOrdered = true;
      lastOrdered = lastPlace;
    },
    /** Adds restored contacts to the lists of active and of quiet contacts, ordered by last contact. */
    activate(heardOf: number[], notHeardOf: number[] = []) {
      activate(heardOf);
      for (const contact of inOrder(notHeardOf)) append(contact, quiet);
    },
    /** Makes the certificate inactive until its next contact. */
    retire: (id: string) => retire(numbers.find(id)),
    /** Notes that a successor was decided; call `retireRenewed` once it is stored. */
    markRenewed(id: string) {
      const contact = numbers.find(id);
      if (contact === NONE) return;
      blockOf(contact).renewed[rowOf(contact)] = 1;
      // A later contact would look as if it came after the renewal.
      if (later.delete(contact)) markDirty(contact);
    },
    /** Retires the certificate, unless it was used again since it was marked. */
    retireRenewed(id: string) {
      const contact = numbers.find(id);
      if (contact !== NONE && blockOf(contact).renewed[rowOf(contact)] === 1) retire(contact);
    },
    /** Drops the contact of a certificate that is being removed; it is no longer written. */
    remove(id: string) {
      const contact = numbers.find(id);
      if (contact === NONE) return;
      retire(contact);
      later.delete(contact);
      write(contact, 0, '', '');
      const block = blockOf(contact);
      const row = rowOf(contact);
      block.newestSignedAt[row] = 0;
      block.dirty[row] = 0;
      block.chains[row] = NOT_HEARD;
    },
    /** Call once before the first contact: until then, contacts were recorded by earlier processes. */
    begin(now: number) {
      recordedFrom = now;
      showAtMost(now);
    },
    /**
     * The clock was set by this much, to `now`. If it was wrong before, the contacts that it recorded move with it, so that
     * they are as long ago as they were.
     */
    clockSet(now: number, byMs: number, wasWrong: boolean) {
      for (let contact = active.newest; contact !== NONE; contact = list.olderThan(contact)) {
        keepForWalks(contact);
      }
      if (wasWrong) moveRecorded(byMs);
      recordedFrom = wasWrong ? recordedFrom + byMs : now;
      for (const [contact, at] of later) {
        if (at > now) continue;
        setLastSeen(contact, at);
        later.delete(contact);
      }
      showAtMost(now);
      sortActive();
    },
    /** The time of the most recent contact; 0 if no certificate is active. */
    latest: () => (active.newest === NONE ? 0 : lastSeenOf(active.newest)),
    activeCount(now: number): number {
      dropQuiet(now);
      return active.count;
    },
    /**
     * The ids of at most `most` certificates among which are all silent ones, in no order; null if there are more. Those
     * that are over, such as expired ones, make room, not more than `most` at once.
     */
    quietIds(now: number, most: number, isOver: (id: string) => boolean): string[] | null {
      dropQuiet(now);
      for (let left = most; left > 0 && quiet.count > most; left -= 1) {
        if (!isOver(numbers.idOf(quiet.oldest) ?? '')) break;
        unlink(quiet.oldest);
      }
      if (quiet.count > most) return null;
      const ids: string[] = [];
      for (let contact = quiet.newest; contact !== NONE; contact = list.olderThan(contact)) {
        ids.push(numbers.idOf(contact) ?? '');
      }
      return ids;
    },
    /** The ids of all certificates whose last report was not healthy; null if there are more than `most`. */
    unwellIds: (most: number): string[] | null =>
      unwell.size > most ? null : [...unwell].map((contact) => numbers.idOf(contact) ?? ''),
    /** The time of the certificate's last contact, in milliseconds since the epoch; 0 if there was none. */
    lastSeen(id: string): number {
      const contact = numbers.find(id);
      return contact === NONE ? 0 : lastSeenOf(contact);
    },
    /** The status reported at the last contact; empty if there was none. */
    statusOf(id: string): string {
      const contact = numbers.find(id);
      return contact === NONE ? '' : (blockOf(contact).statuses[rowOf(contact)] as string);
    },
    /** The chain that the node knew at its last contact with this process; `NOT_HEARD` if there was none. */
    chainOf(id: string): number {
      const contact = numbers.find(id);
      return contact === NONE ? NOT_HEARD : (blockOf(contact).chains[rowOf(contact)] as number);
    },
    /** The last contact of a committed certificate. */
    contactOf: (id: string, now: number) => contactAt(numbers.find(id), now),
    /** The same by the number of the certificate. */
    contactAt,
    /** Starts a walk over the currently active certificates. */
    walk(now: number): RosterWalk {
      dropQuiet(now);
      const walk = createRosterWalk(list, active.count, () => walks.delete(walk));
      walks.add(walk);
      return walk;
    },
    /** The most rows that `takeDirty` has to return. */
    dirtyCount: () => dirty.length,
    /**
     * At most `most` of the rows that changed since they were last returned, those that changed first. Pass them to the
     * store in the same turn of the event loop, so that a removal that is decided later also reaches the store later.
     */
    takeDirty(most = dirty.length): StoredLiveness[] {
      const taken = dirty.splice(0, most);
      return taken.map(takeRow).filter((row) => row !== null);
    },
  };
}

/** Whether the certificate is used, is in force but not heard from, or can be neither until its next contact. */
export type Use = 'active' | 'quiet' | 'none';

/** One last contact. Instants are in milliseconds since the epoch. */
export type StoredContact = Omit<StoredLiveness, 'id'>;

/**
 * Stores last contacts in columns indexed by certificate number. For a million contacts, this takes some 80 MB less
 * than objects, and the garbage collector does not have to copy them.
 */
class ContactBlock {
  readonly lastSeen: Float64Array;
  readonly newestSignedAt: Float64Array;
  readonly statuses: string[];
  readonly remoteAddrs: string[];
  /** Neighbors in the list of active or of quiet contacts, by number. */
  readonly older: Int32Array;
  readonly newer: Int32Array;
  /** Increases along the list of active contacts, from oldest to newest; of others, `QUIET` or `UNLISTED`. */
  readonly places: Float64Array;
  /** 1 if the contact changed since the last flush. */
  readonly dirty: Uint8Array;
  /** 1 if the certificate was renewed after its last contact with this process. */
  readonly renewed: Uint8Array;
  /**
   * The chain of authority keys that the node knew at its last heartbeat, as a number of `known-chains.ts`. Not stored:
   * every node says it again within an active-node window.
   */
  readonly chains: Uint16Array;

  constructor(rows: number) {
    this.lastSeen = new Float64Array(rows);
    this.newestSignedAt = new Float64Array(rows);
    this.statuses = new Array<string>(rows).fill('');
    this.remoteAddrs = new Array<string>(rows).fill('');
    this.older = new Int32Array(rows);
    this.newer = new Int32Array(rows);
    this.places = new Float64Array(rows);
    this.dirty = new Uint8Array(rows);
    this.renewed = new Uint8Array(rows);
    this.chains = new Uint16Array(rows);
  }
}
