/**
 * Which instance is active, and how this one reaches it: at which address, and with which keys [link-2]. And what this
 * instance says about itself to the others [link-1].
 */
import type { Active } from '../../edge/forward/target.ts';
import {
  type InstanceStatusMemory,
  noteLag,
  noteTerm,
} from '../../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../../protocol/contract/publications.ts';
import type { AuthorityKey } from '../../protocol/records/authority-chain.ts';
import type { OwnRow } from '../../store/postgresql/instances.ts';
import type { SeenTerm } from '../../store/postgresql/lease.ts';
import { keysIn } from '../derived-secret.ts';
import type { Gate } from './gate.ts';
import type { ForwardKeys } from './keys.ts';

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
