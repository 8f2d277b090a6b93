/** The rosters that are being read, each by whoever opened it. */
import type { ContactView, RosterWalk } from './roster-walk.ts';

/** What a walk keeps takes memory: whoever opens one more ends the one that was not read for longest. */
const MOST_OPEN = 8;

export interface Rosters {
  /** Returns the number under which the roster is read. */
  open(walk: RosterWalk): number;
  /** The next nodes, at most `limit`; none when all were read, which closes it; null when it is closed. */
  read(roster: number, limit: number): readonly ContactView[] | null;
  close(roster: number): void;
}

export function createRosters(): Rosters {
  /** The one that was read last stands at the end. */
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
