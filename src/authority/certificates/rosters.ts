/**
 * Walks over a snapshot of the active contacts, a few at a time. Because the list keeps changing during the walk, each
 * change is announced to the walk first, which then saves the old state of a contact that it has not visited yet.
 */
import { NONE } from '../subjects/text-index.ts';

/** What a walk returns for a contact. `lastSeen` is in milliseconds since the epoch. */
export interface ContactView {
  readonly id: string;
  readonly lastSeen: number;
  readonly status: string;
  readonly remoteAddr: string;
}

export type RosterWalk = ReturnType<typeof createRosterWalk>;

/** The list of active contacts, identified by number. */
export interface ContactList {
  /** The newest contact, or `NONE`. */
  newest(): number;
  /** The next older contact, or `NONE`. */
  olderThan(contact: number): number;
  /** Increases from the oldest to the newest. */
  placeOf(contact: number): number;
  view(contact: number): ContactView;
}

/** Walks from the newest contact to the oldest, then over the saved contacts. */
export function createRosterWalk(list: ContactList, count: number, forget: () => void) {
  let next = list.newest();
  let kept: ContactView[] = [];

  function takeFromList(limit: number): ContactView[] {
    const taken: ContactView[] = [];
    for (; next !== NONE && taken.length < limit; next = list.olderThan(next)) {
      taken.push(list.view(next));
    }
    return taken;
  }

  return {
    /** The total number of contacts that the walk visits. */
    count,
    /** The next contacts, at most `limit`; an empty list at the end. Use them before anything changes. */
    take(limit: number): readonly ContactView[] {
      if (next !== NONE) return takeFromList(limit);
      const taken = kept.slice(-limit);
      kept.length -= taken.length;
      return taken;
    },
    /** Call before an active contact changes, moves or stops being active. */
    keep(contact: number) {
      // Contacts before the next one were already visited, or became active only after the walk began.
      if (next === NONE || list.placeOf(contact) > list.placeOf(next)) return;
      kept.push(list.view(contact));
      if (contact === next) next = list.olderThan(contact);
    },
    /** Releases the saved contacts. */
    end() {
      next = NONE;
      kept = [];
      forget();
    },
  };
}

/** Walks hold memory, so opening more than this many closes the roster that has been idle the longest. */
const MOST_OPEN = 8;

/** The rosters that are being read. */
export type Rosters = ReturnType<typeof createRosters>;

export function createRosters() {
  /** In order of last use, the most recent last. */
  const walks = new Map<number, RosterWalk>();
  let lastNumber = 0;

  function close(roster: number): void {
    walks.get(roster)?.end();
    walks.delete(roster);
  }

  function closeLeastRead(): void {
    for (const roster of walks.keys()) {
      if (walks.size < MOST_OPEN) return;
      close(roster);
    }
  }

  return {
    /** Returns the id of the roster. */
    open(walk: RosterWalk): number {
      closeLeastRead();
      lastNumber += 1;
      walks.set(lastNumber, walk);
      return lastNumber;
    },
    /**
     * The next nodes, at most `limit`. At the end, returns an empty list and closes the roster; null if the roster is
     * already closed.
     */
    read(roster: number, limit: number): readonly ContactView[] | null {
      const walk = walks.get(roster);
      if (walk === undefined) return null;
      const views = walk.take(limit);
      walks.delete(roster);
      if (views.length > 0) walks.set(roster, walk);
      else walk.end();
      return views;
    },
    close,
  };
}
