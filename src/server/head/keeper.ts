/**
 * Keeps copies of the head of the state in other places: written before a revocation is answered, and otherwise on
 * request [backup-8]. A rolled-back state is thus detected at startup.
 */
import type { Crl, SovereignFeed } from '../../../machines/signed-sequence.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { signRecord } from '../../protocol/records/signed-record.ts';
import { isSignerUnavailable } from '../../protocol/refusals.ts';
import type { StatePosition, Store, StoredSubject, Unit } from '../../store/store.ts';
import type { HeadFile } from './open.ts';

export type HeadKeeper = Awaited<ReturnType<typeof createHeadKeeper>>;

export interface HeadKeeperOptions {
  readonly store: Store;
  readonly position: StatePosition;
  readonly files: readonly HeadFile[];
  readonly networkName: string;
  readonly signer: RecordSigner;
  now(): number;
}

/** Changes of these kinds are answered only after the head is written; after a theft, the old key's no longer counts. */
const REVOKING: ReadonlySet<string> = new Set([
  'crl',
  'sovereign-feed',
  'operator-key',
  'node-key',
  'authority-key',
]);

/** The kinds of subjects that a head is about. */
const IN_HEAD = ['crl', 'sovereign-feed', 'operator-key'];

/** Reads what the head says of the state, which may be in memory already and is not read again then. */
export async function createHeadKeeper(options: HeadKeeperOptions) {
  const { store, files } = options;
  const head = createHead(options.position, options.networkName);
  for (const kind of IN_HEAD) head.noteSubjects(await store.subjectsOf(kind));
  const writes = createSharedWrites(async () => {
    const record = signRecord(head.record(options.now()), options.signer);
    const text = `${canonicalJson(record)}\n`;
    await Promise.all(files.map((file) => file.write(text)));
  });
  let isBegun = false;
  let lastAnswer: Promise<unknown> = Promise.resolve();

  /** Writes the head if the state has changed since the last write. Call once the state is known to be the newest. */
  function keep(): Promise<void> {
    isBegun = true;
    return writes.write();
  }

  async function commitAndKeep(unit: Unit): Promise<number> {
    const committed = await store.commit(unit);
    head.noteUnit(unit, committed);
    writes.changed();
    if (unit.subjects.some(({ kind }) => REVOKING.has(kind))) await keep();
    return committed;
  }

  /** Keeps the last head. If it cannot be signed, the old one stays: it is older than the state, as after a crash. */
  async function keepBefore(end: () => Promise<void>): Promise<void> {
    try {
      if (isBegun) await keep();
    } catch (cause) {
      if (!isSignerUnavailable(cause)) throw cause;
    } finally {
      // The next active instance needs the files.
      for (const file of files) file.release();
      await end();
    }
  }

  /**
   * A wrapper around the store whose answers wait for the head where that matters. Before it lets another process
   * write, it writes the head for the last time and releases its files.
   */
  const kept: Store = {
    ...store,
    commit(unit) {
      const done = commitAndKeep(unit);
      // Waiting for the last commit implies waiting for all commits before it.
      const answer = lastAnswer.then(() => done);
      lastAnswer = answer.catch(() => undefined);
      return answer;
    },
    close: () => keepBefore(store.close),
    abandon: () => keepBefore(store.abandon),
  };
  return { store: kept, keep };
}

/** Calls of `write` that arrive during a write share the next one. */
function createSharedWrites(write: () => Promise<void>) {
  let isChanged = true;
  let writing: Promise<void> = Promise.resolve();
  return {
    changed(): void {
      isChanged = true;
    },
    /** Writes unless nothing has changed since the last write. */
    write(): Promise<void> {
      const next = writing.then(async () => {
        if (!isChanged) return;
        isChanged = false;
        await write();
      });
      writing = next.catch(() => {
        isChanged = true;
      });
      return next;
    },
  };
}

/** The head of a state, which follows what is read and committed. */
function createHead({ epoch, ...position }: StatePosition, networkName: string) {
  let { revision, auditLength, auditHead } = position;
  let crlSequence = -1;
  let feedSequence = -1;
  const revokedOperatorKeys = new Set<string>();

  function noteSubjects(subjects: readonly StoredSubject[]): void {
    for (const { kind, id, snapshot } of subjects) {
      const { value, context } = snapshot;
      if (kind === 'crl') crlSequence = (context as Crl).sequence;
      if (kind === 'operator-key' && value === 'revoked') revokedOperatorKeys.add(id);
      if (kind !== 'sovereign-feed') continue;
      const { issuer, sequence } = context as SovereignFeed;
      if (issuer === networkName) feedSequence = sequence;
    }
  }

  return {
    noteSubjects,
    noteUnit({ subjects, audit }: Unit, committed: number): void {
      noteSubjects(subjects);
      revision = committed;
      auditLength += audit.length;
      auditHead = audit.at(-1)?.entry.hash ?? auditHead;
    },
    record: (now: number) => ({
      format: 'mesh-na-head',
      format_version: 1,
      network_name: networkName,
      epoch,
      revision,
      audit_length: auditLength,
      audit_head: auditHead,
      crl_sequence: crlSequence,
      feed_sequence: feedSequence,
      operator_keys_off: [...revokedOperatorKeys].sort(),
      written_at: formatInstant(now),
    }),
  };
}
