/**
 * A walk over the active contacts as they stand when it starts, a few at a time. The list goes on changing
 * meanwhile, so whoever changes a contact hands it to the walk first: one that was not visited yet is then
 * kept as it was.
 */
import type { LastContact } from './last-contact.ts';

/** What a walk tells of a contact. `lastSeen` in milliseconds since the epoch. */
export type ContactView = Pick<LastContact, 'id' | 'lastSeen' | 'status' | 'remoteAddr'>;

export interface RosterWalk {
  /** How many contacts the whole walk visits. */
  readonly count: number;
  /** The next contacts, at most `limit`; none once all were visited. Use them before anything changes. */
  take(limit: number): readonly ContactView[];
  /** Call before an active contact changes, leaves its place or stops being active. */
  keep(contact: LastContact): void;
  /** No contact is kept any more. */
  end(): void;
}

/** Walks from `newest` to the oldest, and to what was kept last. */
export function createRosterWalk(
  newest: LastContact | null,
  count: number,
  forget: () => void,
): RosterWalk {
  let next = newest;
  let kept: ContactView[] = [];

  function takeFromList(limit: number): ContactView[] {
    const taken: ContactView[] = [];
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
    keep(contact) {
      // What stands before the next one was visited, or has only come to be active since.
      if (next === null || contact.place > next.place) return;
      const { id, lastSeen, status, remoteAddr } = contact;
      kept.push({ id, lastSeen, status, remoteAddr });
      if (contact === next) next = contact.older;
    },
    end() {
      next = null;
      kept = [];
      forget();
    },
  };
}
