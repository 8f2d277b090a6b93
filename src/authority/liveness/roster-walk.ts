/**
 * A walk over the active contacts as they stand when it starts, a few at a time. The list goes on changing
 * meanwhile, so whoever changes a contact hands it to the walk first: one that was not visited yet is then
 * kept as it was.
 */
import { NONE } from '../tables/text-index.ts';

/** What a walk says of a contact. `lastSeen` in milliseconds since the epoch. */
export interface ContactView {
  readonly id: string;
  readonly lastSeen: number;
  readonly status: string;
  readonly remoteAddr: string;
}

export interface RosterWalk {
  /** How many contacts the whole walk visits. */
  readonly count: number;
  /** The next contacts, at most `limit`; none once all were visited. Use them before anything changes. */
  take(limit: number): readonly ContactView[];
  /** Call before an active contact changes, leaves its place or stops being active. */
  keep(contact: number): void;
  /** No contact is kept any more. */
  end(): void;
}

/** The active contacts as a list, each by its number. */
export interface ContactList {
  /** The newest contact, or `NONE`. */
  newest(): number;
  /** The one that was heard of before it, or `NONE`. */
  olderThan(contact: number): number;
  /** Grows from the oldest to the newest. */
  placeOf(contact: number): number;
  view(contact: number): ContactView;
}

/** Walks from the newest to the oldest, and to what was kept last. */
export function createRosterWalk(list: ContactList, count: number, forget: () => void): RosterWalk {
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
    count,
    take(limit) {
      if (next !== NONE) return takeFromList(limit);
      const taken = kept.slice(-limit);
      kept.length -= taken.length;
      return taken;
    },
    keep(contact) {
      // What stands before the next one was visited, or has only come to be active since.
      if (next === NONE || list.placeOf(contact) > list.placeOf(next)) return;
      kept.push(list.view(contact));
      if (contact === next) next = list.olderThan(contact);
    },
    end() {
      next = NONE;
      kept = [];
      forget();
    },
  };
}
