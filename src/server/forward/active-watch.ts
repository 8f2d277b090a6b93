/** Which instance is active, and how this one reaches it: at which address, and with which keys [link-2]. */
import type { Active } from '../../edge/forward/target.ts';
import { type InstanceStatusMemory, noteTerm } from '../../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../../protocol/contract/publications.ts';
import type { SeenTerm } from '../../store/postgresql/lease.ts';
import { keysIn } from '../derived-secret.ts';
import type { Gate } from './gate.ts';
import type { ForwardKeys } from './keys.ts';

export interface ActiveWatchOptions {
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

  function turnTo(next: Active): void {
    active = next;
    for (const listener of listeners) listener(active);
  }

  /** Other keys may be held than a second ago, and others may sign. */
  function refresh(): void {
    gate?.accept(keys.accepted());
    if (active === 'this instance' || seen === null || gate === null) return;
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
    isHere: (): boolean => active === 'this instance',
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
    close: (): void => clearInterval(refreshing),
  };
}
