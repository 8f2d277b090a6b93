/** The store port on the database, as the lease holder's process reaches it: its writes arrive in order. */

import type { Lease } from '../../../src/store/postgresql/lease.ts';
import type { Holding } from '../../../src/store/postgresql/lease-table.ts';
import type { PreviousOwner, Store, Unit } from '../../../src/store/store.ts';
import { type MemoryDisk, storeOn, type Write } from '../memory-disk.ts';
import type { Machine } from './clockwork.ts';
import type { Database } from './database.ts';

export interface RemoteStoreOptions {
  readonly database: Database;
  readonly machine: Machine;
  readonly by: Holding & { readonly previousOwner: PreviousOwner };
  /** A change that was sent at this monotonic time has succeeded. */
  committed(sentAt: number): void;
  /** Ends the lease. */
  readonly end: Lease['end'];
}

export function remoteStore(options: RemoteStoreOptions): Store {
  const { database, machine, by, committed, end } = options;
  const { life } = machine;
  let revision = 0;
  let last: Promise<unknown> = Promise.resolve();
  let problem: string | null = null;

  /** An ended process sends no queries, although its promises continue. */
  function ask<Result>(question: (disk: MemoryDisk) => Result): Promise<Result> {
    if (machine.life !== life) return new Promise(() => undefined);
    return database.ask(machine, () => question(database.disk));
  }

  function change(write: Write, unit: Unit | null): Promise<number> {
    const facts = unit === null ? [] : factsOf(unit);
    const written = last.then(async () => {
      const sentAt = machine.elapsed();
      const after = revision;
      revision = await ask(() => database.commit({ by, after, facts, write }));
      committed(sentAt);
      return revision;
    });
    last = written;
    written.catch((cause) => {
      problem = String(cause);
    });
    return written;
  }

  const { previousOwner } = by;
  const port = storeOn({ ask, change, previousOwner });
  return {
    ...port,
    async load() {
      const contents = await port.load();
      revision = contents.revision;
      return contents;
    },
    putHistory: () => Promise.reject(new Error('Nobody records the history')),
    history() {
      throw new Error('Nobody reads the history');
    },
    health: () => problem,
    isOwner: () => problem === null,
    async close() {
      await last;
      await end('released');
    },
    abandon: () => last.then(() => end('abandoned')),
  };
}

/** What becomes true once the unit is stored, as far as clients are informed. */
function factsOf({ subjects }: Unit): readonly string[] {
  return subjects.flatMap(({ kind, id, version, snapshot: { value, context } }) => {
    switch (kind) {
      case 'certificate':
        if (value === 'revoked') return revoked(id);
        return version === 1 ? joined((context as { nodePublicKey: string }).nodePublicKey) : [];
      case 'invite':
        return version === 1 ? [] : used(id);
      case 'authority-key':
        return keyIs(id, value);
      default:
        return [];
    }
  });
}

export const revoked = (certId: string) => `certificate ${certId} is revoked`;
export const joined = (nodeKey: string) => `node ${nodeKey} has joined`;
export const used = (inviteId: string) => `invite ${inviteId} is used`;
export const keyIs = (publicKey: string, state: string) => `key ${publicKey} is ${state}`;
/** False for keys: a key may become the current one again. */
export const comesOnce = (fact: string) => !fact.startsWith('key ');
/** Whether the signing keys change. */
export const isKeyChange = (fact: string) => /^key .* is (previous|distrusted|retired)$/.test(fact);
