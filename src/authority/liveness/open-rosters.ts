/** The rosters that are being read. */
import type { ContactView, RosterWalk } from './roster-walk.ts';

/** A walk holds memory, so opening one more than this closes the roster that has been idle longest. */
const MOST_OPEN = 8;

export interface Rosters {
  /** Returns the id of the roster. */
  open(walk: RosterWalk): number;
  /**
   * The next nodes, at most `limit`; an empty list at the end, which closes the roster; null when it is
   * closed.
   */
  read(roster: number, limit: number): readonly ContactView[] | null;
  close(roster: number): void;
}

export function createRosters(): Rosters {
  /** In the order of last use, the most recent at the end. */
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
    open(walk) {
      closeLeastRead();
      lastNumber += 1;
      walks.set(lastNumber, walk);
      return lastNumber;
    },
    read(roster, limit) {
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
