/**
 * GET /nodes: the public count and the operators' roster of active nodes [core-4-15]. A roster is read in pieces, so
 * that a large fleet does not delay other commands.
 */
import { JsonText, jsonText } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { descriptionRow } from '../node-descriptions.ts';
import { NONE } from '../subjects/numbering.ts';

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

/**
 * Walks over a snapshot of the active contacts, a few at a time. Because the list keeps changing during the walk, each
 * change is announced to the walk first, which then saves the old state of a contact that it has not visited yet.
 * Goes from the newest contact to the oldest, then over the saved contacts.
 */
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

/** Building one piece takes the authority about a millisecond. */
const ROWS_PER_PIECE = 250;

export const countNodes: Handler<'countNodes'> = (na, _given, at) => ({
  count: na.liveness.activeCount(at),
});

/** Opens the current roster; returns its id for `readRoster` and the number of its nodes. */
export const openRoster: Handler<'openRoster'> = (na, _given, at) => {
  const walk = na.liveness.walk(at);
  return { roster: na.rosters.open(walk), count: walk.count };
};

/** The next members of `nodes` as text, without the enclosing braces; empty at the end. */
export const readRoster: Handler<'readRoster'> = (na, roster) => {
  const views = na.rosters.read(roster, ROWS_PER_PIECE);
  if (views === null) throw new Refusal('service_not_ready');
  return new JsonText(views.map((view) => `${jsonText(view.id)}:${row(na, view)}`).join());
};

export const closeRoster: Handler<'closeRoster'> = (na, roster) => {
  na.rosters.close(roster);
  return null;
};

function row(na: Authority, { id, status, lastSeen, remoteAddr }: ContactView): string {
  const certificate = na.subjects.committed('certificate', id)?.context;
  return jsonText({
    node_public_key: certificate?.nodePublicKey ?? '',
    ...descriptionRow(na.certificates.descriptionOf(id)),
    roles: certificate?.roles ?? [],
    status,
    last_heartbeat: formatInstant(lastSeen),
    remote_addr: remoteAddr,
    expires_at: formatInstant(certificate?.expiresAt ?? 0),
  });
}
