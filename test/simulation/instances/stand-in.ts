/**
 * In place of the authority, what instances have to keep in order: revocations, which a public list shows, and invites,
 * each for one node. It decides in memory, and answers when the database has stored it.
 */

import { assertNotOlder, type SeenState } from '../../../src/authority/open.ts';
import { sha256Hex } from '../../../src/base/crypto/digest.ts';
import type { Answer } from '../../../src/protocol/contract/answers.ts';
import type { Call } from '../../../src/protocol/contract/calls.ts';
import { publishedDocument } from '../../../src/protocol/contract/documents.ts';
import type { DocumentPublisher } from '../../../src/protocol/contract/publications.ts';
import type { StatePosition } from '../../../src/store/store.ts';
import type { Machine } from './clockwork.ts';
import type { Database, Entry } from './database.ts';

export interface Change {
  readonly id: string;
  /** Null for a revocation. */
  readonly invite: string | null;
}

export interface StandIn {
  readonly call: Call;
  /** Resolves when everything decided is stored. */
  close(): Promise<void>;
}

export interface StandInOptions {
  /** Who holds the lease. */
  readonly holder: string;
  /** What this process has seen of the state before its turn; null for nothing that it remembers. */
  readonly seen: SeenState | null;
  readonly database: Database;
  readonly machine: Machine;
  readonly epoch: number;
  readonly publisher: DocumentPublisher;
  fatal(cause: unknown): void;
  /** A commit has succeeded that was sent at this monotonic time. */
  committed(sentAt: number): void;
}

const ISSUER = 'authority';
const DONE: Answer = { ok: true, json: '{}' };
const USED: Answer = { ok: false, refusal: 'invalid_invite_token', details: {} };
const SHUTTING_DOWN: Answer = { ok: false, refusal: 'shutting_down', details: {} };

export async function openStandIn(options: StandInOptions): Promise<StandIn> {
  const { database, machine, epoch, holder, publisher, fatal, seen } = options;
  const stored = await database.ask(machine, () => [...database.entries]);
  const revoked = stored.filter(({ invite }) => invite === null).map(({ id }) => id);
  if (seen !== null) {
    const store = {
      position: async () => positionOf(stored),
      auditHashAt: async (length: number) => positionOf(stored.slice(0, length)).auditHead,
    };
    await assertNotOlder(store, seen, {
      sequence: revoked.length,
      isListed: (id) => revoked.includes(id),
    });
  }
  let entries = stored.length;
  const used = new Set(stored.map(({ invite }) => invite));
  let isSealed = false;
  let lastCommit: Promise<unknown> = Promise.resolve();

  /** In the form of a revocation list, so that followers get what each version adds. */
  function publish(): void {
    const ids = revoked.map((id) => JSON.stringify(id)).join(',');
    const list = `{"revoked_certificates":[${ids}],"sequence":${revoked.length}}`;
    const revision = { issuer: ISSUER, entries_digest: sha256Hex(`${ISSUER}\n${ids}`) };
    publisher.publish('crl', publishedDocument(list));
    publisher.publish('crl_revision', publishedDocument(JSON.stringify(revision)));
  }

  function commit({ id, invite }: Change): Promise<void> {
    const entry: Entry = { epoch, holder, after: entries, id, invite };
    entries += 1;
    const committed = lastCommit.then(async () => {
      const sentAt = machine.elapsed();
      await database.ask(machine, () => database.commit(entry));
      options.committed(sentAt);
    });
    lastCommit = committed;
    committed.catch(fatal);
    return committed;
  }

  async function change({ id, invite }: Change): Promise<Answer> {
    if (invite !== null && used.has(invite)) {
      await lastCommit;
      return USED;
    }
    if (invite !== null) used.add(invite);
    await commit({ id, invite });
    if (invite === null) {
      revoked.push(id);
      publish();
    }
    return DONE;
  }

  publish();
  return {
    call(name, given) {
      if (isSealed) return SHUTTING_DOWN;
      const isChange = name === 'join' || name === 'revokeCertificate';
      return isChange ? change(given as unknown as Change) : DONE;
    },
    async close() {
      isSealed = true;
      await lastCommit;
    },
  };
}

/** What the audit log says of a state in which these were stored. */
export function positionOf(entries: readonly Pick<Entry, 'id'>[]): StatePosition {
  const { length } = entries;
  return { epoch: 0, revision: length, auditLength: length, auditHead: entries.at(-1)?.id ?? '' };
}
