/**
 * The embedded store: one LMDB environment in the data directory, owned by one process at a time.
 *
 * Units that arrive while a flush is under way are written together in the next one. A flush writes each
 * subject under its key, and one row each of what its units add to the audit log, the nonces and the
 * changes: rows are what a flush costs. Every write is conditional on the ownership record, so a process
 * that lost the directory cannot write to it again.
 */
import { asBinary, type Database, type RootDatabase } from 'lmdb';
import { parseJson } from '../json/parse.ts';
import { openDatabases, openEnvironment, packr } from './lmdb-environment.ts';
import { describeSelf, isAlive, type ProcessIdentity } from './process-identity.ts';
import { createShapes, type Shape, type Shapes, type StoredSnapshot } from './shapes.ts';
import { createSharing } from './sharing.ts';
import {
  type AuditEntry,
  type Changes,
  GENESIS_HASH,
  type Store,
  StoreConflict,
  type StoreContents,
  type StoredLiveness,
  type StoredSubject,
  type SubjectRemoval,
  type SubjectWrite,
  type Unit,
} from './store.ts';

const SCHEMA_VERSION = 3;
/** Revisions whose changes are kept at least; a follower that is further behind loads everything again. */
const KEPT_CHANGES = 10_000;
const NONCE_BUCKET_MS = 60_000;
/** Rows of nonces. */
const FORGET_AT_MOST = 20_000;
/** LMDB takes keys of 1,978 bytes; a character may need three. */
const MAX_KEY_LENGTH = 600;
/** Audit entries read back at a start, for those who show what happened last. */
const RECENT_AUDIT = 1000;

/** In place of a version: the subject is not in the store, or no longer. */
const NOT_STORED = 0;

type SubjectAddress = Pick<StoredSubject, 'kind' | 'id'>;

interface Owner extends ProcessIdentity {
  readonly held: boolean;
}

/** A unit as it will be written: whatever cannot be encoded has been refused before this. */
interface EncodedUnit {
  readonly subjects: readonly { readonly write: SubjectWrite; readonly bytes: Buffer }[];
  readonly removals: readonly SubjectRemoval[];
  readonly nonces: Unit['nonces'];
  readonly audit: readonly string[];
}

interface InFlight {
  readonly version: number;
  /** The last unit that changed the subject: a version may come again after a removal. */
  readonly unit: EncodedUnit;
}

interface PendingUnit {
  readonly unit: EncodedUnit;
  readonly resolve: (revision: number) => void;
  readonly reject: (cause: unknown) => void;
}

/** Opens the store below `dataDir`; throws one clear sentence when another process holds it. */
export function openLmdbStore(dataDir: string): Store {
  let env = openEnvironment(dataDir, false);
  let db = openDatabases(env);
  const schema = Number(db.meta.get('schema') ?? SCHEMA_VERSION);
  if (schema !== SCHEMA_VERSION) {
    throw new Error(
      `The data directory has schema version ${schema}; this program reads version ${SCHEMA_VERSION}`,
    );
  }
  const { ownership, closedCleanly } = takeOwnership(env, db.meta);
  const shapes = createShapes((db.meta.get('shapes') ?? []) as readonly Shape[]);
  let storedShapes = shapes.table.length;

  /** The revision that was given out last, and the one up to which everything is on disk. */
  let revision = lastKey(db.changes);
  let landedRevision = revision;
  let auditLength = lastKey(db.audit);
  let failure: string | null = null;
  let queue: PendingUnit[] = [];
  let flushing: Promise<void> | null = null;
  /** Versions of subjects whose write is not on disk yet. */
  const inFlight = new Map<string, InFlight>();

  function load(): StoreContents {
    const share = createSharing();
    const shareContact = createSharing();
    return {
      revision: landedRevision,
      subjects: db.subjects.getRange({ versions: true }).map(({ key, value, version = 0 }) => ({
        kind: share(key[0], 0),
        id: key[1],
        version,
        snapshot: shapes.build(value, share),
      })),
      nonces: db.nonces
        .getRange()
        .flatMap(({ key: [forgetAt], value }) => value.map((digest) => ({ digest, forgetAt }))),
      liveness: db.liveness.getRange().map(({ key, value }) => {
        const [lastSeen, status, remoteAddr, newestSignedAt] = value;
        return {
          id: key,
          lastSeen,
          status: shareContact(status, 0),
          remoteAddr: shareContact(remoteAddr, 1),
          newestSignedAt,
        };
      }),
      recentAudit: recentAudit(db.audit),
      auditHead: auditHead(db.audit),
      closedCleanly,
    };
  }

  /** Pages that were read stay mapped, and count as memory of this process, until the file is closed. */
  async function endLoading(): Promise<void> {
    await env.close();
    env = openEnvironment(dataDir, false);
    db = openDatabases(env);
  }

  function commit(unit: Unit): Promise<number> {
    if (failure !== null) return Promise.reject(new Error(failure));
    let encoded: EncodedUnit;
    try {
      encoded = encodeUnit(unit, shapes);
    } catch (cause) {
      return Promise.reject(cause);
    }
    const stale =
      unit.subjects.find((write) => !replacesCurrent(write)) ??
      unit.removals.find((removal) => !replacesCurrent(removal));
    if (stale !== undefined) {
      return Promise.reject(new StoreConflict(`${stale.kind} ${stale.id} has changed meanwhile`));
    }
    for (const write of unit.subjects) {
      inFlight.set(inFlightKey(write), { version: write.version, unit: encoded });
    }
    for (const removal of unit.removals) {
      inFlight.set(inFlightKey(removal), { version: NOT_STORED, unit: encoded });
    }
    return new Promise((resolve, reject) => {
      queue.push({ unit: encoded, resolve, reject });
      flushing ??= flushQueue();
    });
  }

  function replacesCurrent(change: SubjectRemoval): boolean {
    const { kind, id, replaces } = change;
    const changed = inFlight.get(inFlightKey(change));
    if (changed !== undefined) return changed.version === replaces;
    const key: [string, string] = [kind, id];
    return replaces === NOT_STORED
      ? !db.subjects.doesExist(key)
      : db.subjects.doesExist(key, replaces);
  }

  async function flushQueue(): Promise<void> {
    // Units of one event turn belong into one flush: begin when the turn is over.
    await Promise.resolve();
    while (queue.length > 0) {
      const batch = queue;
      queue = [];
      await flushBatch(batch);
    }
    flushing = null;
  }

  async function flushBatch(batch: readonly PendingUnit[]): Promise<void> {
    const first = revision + 1;
    try {
      // Behind a unit that is missing nothing may be written: the audit chain would be broken on disk.
      if (failure !== null) throw new Error(failure);
      await writeAsOwner(() => {
        writeNewShapes();
        writeUnits(batch.map(({ unit }) => unit));
      });
    } catch (cause) {
      failure = cause instanceof Error ? cause.message : String(cause);
      for (const { reject } of batch) reject(cause);
      return;
    }
    landedRevision = revision;
    for (const [index, { unit, resolve }] of batch.entries()) {
      for (const { write } of unit.subjects) landed(write, unit);
      for (const removal of unit.removals) landed(removal, unit);
      resolve(first + index);
    }
  }

  function landed(subject: SubjectAddress, unit: EncodedUnit): void {
    const key = inFlightKey(subject);
    if (inFlight.get(key)?.unit === unit) inFlight.delete(key);
  }

  /** A shape is on disk no later than what is written in it. */
  function writeNewShapes(): void {
    if (shapes.table.length === storedShapes) return;
    db.meta.put('shapes', shapes.table);
    storedShapes = shapes.table.length;
  }

  function writeUnits(units: readonly EncodedUnit[]): void {
    revision += units.length;
    for (const { subjects, removals } of units) {
      for (const { write, bytes } of subjects) {
        db.subjects.put(
          [write.kind, write.id],
          asBinary(bytes) as unknown as StoredSnapshot,
          write.version,
        );
      }
      for (const { kind, id } of removals) {
        db.subjects.remove([kind, id]);
        db.liveness.remove(id);
      }
    }
    writeNonces(units);
    writeAudit(units);
    writeChanges(units);
  }

  function writeNonces(units: readonly EncodedUnit[]): void {
    const buckets = new Map<number, string[]>();
    for (const { nonces } of units) {
      for (const { digest, forgetAt } of nonces) {
        const bucket = bucketOf(forgetAt);
        const digests = buckets.get(bucket);
        if (digests === undefined) buckets.set(bucket, [digest]);
        else digests.push(digest);
      }
    }
    for (const [bucket, digests] of buckets) db.nonces.put([bucket, revision], digests);
  }

  function writeAudit(units: readonly EncodedUnit[]): void {
    const entries = units.flatMap(({ audit }) => audit);
    if (entries.length === 0) return;
    auditLength += entries.length;
    db.audit.put(auditLength, entries.join('\n'));
  }

  function writeChanges(units: readonly EncodedUnit[]): void {
    db.changes.put(
      revision,
      units.map(({ subjects, removals }) => [
        ...subjects.map(({ write: { kind, id } }) => [kind, id] as const),
        ...removals.map(({ kind, id }) => [kind, id] as const),
      ]),
    );
    for (const past of db.changes.getKeys({ end: revision - KEPT_CHANGES + 1 })) {
      db.changes.remove(past);
    }
  }

  async function writeAsOwner(write: () => void): Promise<void> {
    const written = await db.meta.ifVersion('owner', ownership, write);
    if (!written) throw new Error('Another process has taken over the data directory');
  }

  function changes(since: number): Changes {
    if (since < landedRevision - KEPT_CHANGES) return 'too_old';
    const touched = new Map<string, { kind: string; id: string }>();
    for (const { key, value } of db.changes.getRange({
      start: since + 1,
      end: landedRevision + 1,
    })) {
      const before = key - value.length;
      for (const [kind, id] of value.slice(Math.max(0, since - before)).flat()) {
        touched.set(`${kind} ${id}`, { kind, id });
      }
    }
    return { revision: landedRevision, subjects: [...touched.values()] };
  }

  async function touchMany(rows: readonly StoredLiveness[]): Promise<void> {
    await writeAsOwner(() => {
      for (const { id, lastSeen, status, remoteAddr, newestSignedAt } of rows) {
        db.liveness.put(id, [lastSeen, status, remoteAddr, newestSignedAt]);
      }
    });
  }

  async function forgetNonces(now: number): Promise<void> {
    const past = [...db.nonces.getKeys({ end: [bucketOf(now)], limit: FORGET_AT_MOST })];
    if (past.length === 0) return;
    await writeAsOwner(() => {
      for (const key of past) db.nonces.remove(key);
    });
  }

  function health(): string | null {
    if (failure !== null) return failure;
    try {
      return db.meta.get('schema') === SCHEMA_VERSION ? null : 'the schema version is missing';
    } catch {
      return 'the database cannot be read';
    }
  }

  async function close(): Promise<void> {
    await flushing;
    if (failure === null) {
      await writeAsOwner(() => {
        db.meta.put('closed_cleanly', true);
        db.meta.put('owner', { ...describeSelf(), held: false }, ownership);
      });
    }
    await env.close();
  }

  return { load, endLoading, commit, changes, touchMany, forgetNonces, health, close };
}

/** Reads the audit entries of a data directory in order, also while a server is running on it. */
export function* readAuditEntries(dataDir: string): Generator<AuditEntry> {
  const env = openEnvironment(dataDir, true);
  try {
    const { audit } = openDatabases(env);
    for (const { value } of audit.getRange()) yield* decodeAudit(value);
  } finally {
    void env.close();
  }
}

/**
 * Takes the directory for this process inside one write transaction. LMDB's write lock is released when
 * its holder dies, so two starters cannot both succeed and a crashed owner never blocks the next one.
 */
function takeOwnership(
  env: RootDatabase,
  meta: Database<unknown, string>,
): { ownership: number; closedCleanly: boolean } {
  const claim = env.transactionSync(() => {
    const entry = meta.getEntry('owner');
    const owner = entry?.value as Owner | undefined;
    if (owner?.held === true && isAlive(owner)) return null;
    const ownership = (entry?.version ?? 0) + 1;
    const closedCleanly = owner === undefined || meta.get('closed_cleanly') === true;
    meta.putSync('schema', SCHEMA_VERSION);
    meta.putSync('closed_cleanly', false);
    meta.putSync('owner', { ...describeSelf(), held: true }, ownership);
    return { ownership, closedCleanly };
  });
  if (claim === null) throw new Error('The data directory is in use by another process');
  return claim;
}

/** The last key of a table whose rows only come at its end; 0 when there is none. */
function lastKey(table: Database<unknown, number>): number {
  for (const key of table.getKeys({ reverse: true, limit: 1 })) return key;
  return 0;
}

function auditHead(audit: Database<string, number>): string {
  for (const { value } of audit.getRange({ reverse: true, limit: 1 })) {
    return decodeAudit(value).at(-1)?.hash ?? GENESIS_HASH;
  }
  return GENESIS_HASH;
}

function recentAudit(audit: Database<string, number>): AuditEntry[] {
  let recent: AuditEntry[] = [];
  for (const { value } of audit.getRange({ reverse: true })) {
    recent = [...decodeAudit(value), ...recent];
    if (recent.length >= RECENT_AUDIT) break;
  }
  return recent.slice(-RECENT_AUDIT);
}

/** Encodes outside the transaction, so that a value that cannot be stored spoils no other unit. */
function encodeUnit({ subjects, removals, nonces, audit }: Unit, shapes: Shapes): EncodedUnit {
  if (removals.length > 0) assertEachOnce([...subjects, ...removals]);
  for (const { kind, id } of subjects) {
    if (kind.length + id.length > MAX_KEY_LENGTH)
      throw new Error('The id of a subject is too long');
  }
  return {
    subjects: subjects.map((write) => ({
      write,
      bytes: packr.pack(shapes.flatten(write.snapshot)),
    })),
    removals,
    nonces,
    audit: audit.map(({ entry, text }) => entry.hash + text),
  };
}

/** The entries of a row; canonical text holds no line break, and keeps numbers of any size as they were. */
function decodeAudit(row: string): AuditEntry[] {
  return row.split('\n').map((line) => {
    const textAt = line.indexOf('{');
    const entry = parseJson(line.slice(textAt)) as unknown as Omit<AuditEntry, 'hash'>;
    return { ...entry, hash: line.slice(0, textAt) };
  });
}

function assertEachOnce(subjects: readonly SubjectAddress[]): void {
  if (new Set(subjects.map(inFlightKey)).size < subjects.length) {
    throw new Error('A unit names a subject twice');
  }
}

function inFlightKey({ kind, id }: SubjectAddress): string {
  return `${kind} ${id}`;
}

function bucketOf(instant: number): number {
  return Math.ceil(instant / NONCE_BUCKET_MS) * NONCE_BUCKET_MS;
}
