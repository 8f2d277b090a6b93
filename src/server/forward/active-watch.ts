/**
 * Which instance is active, and how this one reaches it: at which address, and with which keys [link-2]. And what this
 * instance says about itself to the others [link-1].
 */
import type { Logger } from '../../base/log/logger.ts';
import type { Active } from '../../edge/forward/target.ts';
import type { DocumentPublisher } from '../../protocol/contract/documents.ts';
import {
  answersIn,
  type InstanceStatusMemory,
  noteLag,
  noteTerm,
  noteVacant,
} from '../../protocol/contract/instance-status.ts';
import type { AuthorityKey } from '../../protocol/records/authority-chain.ts';
import type { OwnRow } from '../../store/postgresql/instances.ts';
import type { SeenTerm } from '../../store/postgresql/lease.ts';
import type { Gate } from './gate.ts';
import { type ForwardKeys, keysIn } from './keys.ts';

/** The state that a standby keeps ready. */
export interface StandbyState {
  /** Null while there is none. */
  readonly revision: number | null;
  /** How many revisions it is behind; null while there is none. */
  readonly lag: number | null;
  /** The keys of the authority in it. */
  readonly keys: readonly AuthorityKey[];
}

interface ActiveWatchOptions {
  readonly memory: InstanceStatusMemory;
  readonly keys: ForwardKeys;
  /** Null if instances do not forward to each other. */
  readonly gate: Pick<Gate, 'accept'> | null;
  readonly publisher: Pick<DocumentPublisher, 'follow'>;
}

/** How often the keys of the authority are looked for. */
const KEYS_MS = 1000;

export function watchActive({ memory, keys, gate, publisher }: ActiveWatchOptions) {
  const listeners: ((active: Active) => void)[] = [];
  let active: Active = null;
  let seen: SeenTerm | null = null;
  let state: StandbyState = { revision: null, lag: null, keys: [] };
  /** The smallest since the row was last written: what was stored a moment ago is no lag. */
  let leastLag: number | null = null;
  const isHere = () => active === 'this instance';

  function turnTo(next: Active): void {
    active = next;
    for (const listener of listeners) listener(active);
  }

  /** Other keys may be held than a second ago, and others may sign. */
  function refresh(): void {
    gate?.accept(keys.accepted());
    if (isHere() || seen === null || gate === null) return;
    const { term, link } = seen;
    turnTo(link === null ? null : { term, address: link, keys: keys.offered() });
  }

  publisher.follow(({ name, document }) => {
    if (name !== 'authority_keys') return;
    keys.know(keysIn(document));
    // Another key signs once this publication is complete, and one that was stolen no longer proves anything.
    setImmediate(refresh);
  });
  const refreshing = setInterval(refresh, KEYS_MS).unref();

  return {
    isHere,
    /** Notes the term of another instance, as the database shows it. */
    see(term: SeenTerm): void {
      const isOther = term.term !== seen?.term || term.link !== seen.link;
      seen = term;
      if (gate !== null) noteTerm(memory, term.term);
      if (isOther) refresh();
    },
    turnHere: (): void => turnTo('this instance'),
    /** Calls back with the active instance whenever that changes, and now. */
    follow(listener: (active: Active) => void): void {
      listeners.push(listener);
      listener(active);
    },
    /** Notes how the state fares that this instance keeps ready. */
    looked(next: StandbyState): void {
      if (isHere()) return;
      state = next;
      noteLag(memory, next.lag);
      leastLag = next.lag === null ? null : Math.min(next.lag, leastLag ?? next.lag);
      keys.know(next.keys);
    },
    /** The row of this instance, to be written now. */
    ownRow(): OwnRow {
      const { revision, lag } = state;
      const behind = lag === null ? null : Math.min(lag, leastLag ?? lag);
      leastLag = null;
      const isActive = isHere();
      return { isActive, revision, lag: isActive ? 0 : behind, nextKey: keys.nextKey() };
    },
    close: (): void => clearInterval(refreshing),
  };
}

interface VacancyOptions {
  readonly memory: InstanceStatusMemory;
  /** How long a lease lasts without renewal, milliseconds. */
  readonly leaseMs: number;
  readonly logger: Logger;
  elapsed(): number;
}

/**
 * Finds out that nobody is active: this instance has reached neither the active one nor a writable database for so long
 * that every lease it knows of has expired [link-6].
 *
 * It cannot distinguish a database that is down from one that only this instance cannot reach. So each copy that it
 * serves then says since when it may be outdated, and an instance that reaches the database serves none.
 */
export function createVacancy({ memory, leaseMs, logger, elapsed }: VacancyOptions) {
  let reachedAt = elapsed();
  let answers = answersIn(memory);
  let isVacant = false;

  function reached(): void {
    reachedAt = elapsed();
    if (!isVacant) return;
    isVacant = false;
    noteVacant(memory, false);
    logger.write('INFO', 'link', 'The database or an active instance can be reached again');
  }

  return {
    /** Call when the database has said who is active, or that nobody is. */
    reached,
    /** Call when the database is unreachable or read-only, so that nobody can become active. */
    missed(): void {
      const known = answers;
      answers = answersIn(memory);
      if (answers !== known) reached();
      // The instance that was last active may still hold a valid lease.
      if (isVacant || elapsed() - reachedAt < leaseMs) return;
      isVacant = true;
      noteVacant(memory, true);
      const problem = 'Neither a writable database nor an active instance can be reached';
      const served = 'the signed documents that were passed on last are served, marked as such';
      logger.write('WARNING', 'link', `${problem}: ${served}, and all other requests are refused`);
    },
  };
}
