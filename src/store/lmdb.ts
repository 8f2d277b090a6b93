/**
 * The embedded store: one LMDB environment in the data directory, owned by one process at a time.
 *
 * Units that arrive while a flush is under way are written together in the next one. Every write is
 * conditional on the ownership record, so a process that lost the directory cannot write to it again.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { describeSelf, isAlive, type ProcessIdentity } from './process-identity.ts';
import {
  type AuditEntry,
  type Changes,
  GENESIS_HASH,
  type Snapshot,
  type Store,
  StoreConflict,
  type StoreContents,
  type StoredLiveness,
  type StoredSubject,
  type Unit,
} from './store.ts';

const SCHEMA_VERSION = 1;
const MAX_DATABASES = 16;
/** Revisions whose changes are kept for followers; an older follower loads everything again. */
const KEPT_CHANGES = 10_000;
const NONCE_BUCKET_MS = 60_000;
const FORGET_AT_MOST = 20_000;
/** Audit entries read back at a start, for those who show what happened last. */
const RECENT_AUDIT = 1000;

interface Owner extends ProcessIdentity {
  readonly held: boolean;
}

interface PendingUnit {
  readonly unit: Unit;
  readonly resolve: (revision: number) => void;
  readonly reject: (cause: unknown) => void;
}

/** Opens the store below `dataDir`; throws one clear sentence when another process holds it. */
export function openLmdbStore(dataDir: string): Store {
  const env = openEnvironment(dataDir, false);
  const db = openDatabases(env);
  const schema = Number(db.meta.get('schema') ?? SCHEMA_VERSION);
  if (schema !== SCHEMA_VERSION) {
    throw new Error(
      `The data directory has schema version ${schema}; this program reads version ${SCHEMA_VERSION}`,
    );
  }
  const { ownership, closedCleanly } = takeOwnership(env, db.meta);

  let revision = Number(db.meta.get('revision') ?? 0);
  let auditLength = lastAudit(db.audit)?.position ?? 0;
  let failure: string | null = null;
  let queue: PendingUnit[] = [];
  let flushing: Promise<void> | null = null;
  /** Versions of subjects whose write is not on disk yet. */
  const inFlight = new Map<string, number>();

  function load(): StoreContents {
    return {
      revision,
      subjects: db.subjects.getRange({ versions: true }).map(toStoredSubject),
      nonces: db.nonces.getKeys().map((key) => ({
        forgetAt: Number((key as unknown[])[0]),
        digest: String((key as unknown[])[1]),
      })),
      liveness: db.liveness.getRange().map(({ key, value }) => {
        const [lastSeen, status, remoteAddr, newestSignedAt] = value;
        return { id: String(key), lastSeen, status, remoteAddr, newestSignedAt };
      }),
      recentAudit: recentAudit(db.audit),
      auditHead: lastAudit(db.audit)?.hash ?? GENESIS_HASH,
      closedCleanly,
    };
  }

  function commit(unit: Unit): Promise<number> {
    if (failure !== null) return Promise.reject(new Error(failure));
    const stale = unit.subjects.find((write) => currentVersion(write) !== write.replaces);
    if (stale !== undefined) {
      return Promise.reject(new StoreConflict(`${stale.kind} ${stale.id} has changed meanwhile`));
    }
    for (const write of unit.subjects) inFlight.set(inFlightKey(write), write.version);
    return new Promise((resolve, reject) => {
      queue.push({ unit, resolve, reject });
      flushing ??= flushQueue();
    });
  }

  function currentVersion(write: { kind: string; id: string }): number {
    return (
      inFlight.get(inFlightKey(write)) ?? db.subjects.getEntry([write.kind, write.id])?.version ?? 0
    );
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
      await writeAsOwner(() => {
        for (const { unit } of batch) writeUnit(unit);
        db.meta.put('revision', revision);
      });
    } catch (cause) {
      failure = cause instanceof Error ? cause.message : String(cause);
      for (const { reject } of batch) reject(cause);
      return;
    }
    for (const [index, { unit, resolve }] of batch.entries()) {
      for (const write of unit.subjects) landed(write);
      resolve(first + index);
    }
  }

  function landed(write: StoredSubject): void {
    const key = inFlightKey(write);
    if (inFlight.get(key) === write.version) inFlight.delete(key);
  }

  function writeUnit(unit: Unit): void {
    revision += 1;
    for (const { kind, id, version, snapshot } of unit.subjects) {
      db.subjects.put([kind, id], snapshot, version);
    }
    for (const { digest, forgetAt } of unit.nonces) db.nonces.put([bucketOf(forgetAt), digest], 1);
    for (const entry of unit.audit) {
      auditLength += 1;
      db.audit.put(auditLength, entry);
    }
    db.changes.put(
      revision,
      unit.subjects.map(({ kind, id }) => [kind, id] as const),
    );
    db.changes.remove(revision - KEPT_CHANGES);
  }

  async function writeAsOwner(write: () => void): Promise<void> {
    const written = await db.meta.ifVersion('owner', ownership, write);
    if (!written) throw new Error('Another process has taken over the data directory');
  }

  function changes(since: number): Changes {
    if (since < revision - KEPT_CHANGES) return 'too_old';
    const touched = new Map<string, { kind: string; id: string }>();
    for (const { value } of db.changes.getRange({ start: since + 1, end: revision + 1 })) {
      for (const [kind, id] of value) touched.set(`${kind} ${id}`, { kind, id });
    }
    return { revision, subjects: [...touched.values()] };
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

  return { load, commit, changes, touchMany, forgetNonces, health, close };
}

/** Reads the audit entries of a data directory in order, also while a server is running on it. */
export function readAuditEntries(dataDir: string): Iterable<AuditEntry> {
  const { audit } = openDatabases(openEnvironment(dataDir, true));
  return audit.getRange().map(({ value }) => value);
}

function openEnvironment(dataDir: string, readOnly: boolean): RootDatabase {
  const path = join(dataDir, 'state');
  if (!readOnly) mkdirSync(path, { recursive: true, mode: 0o700 });
  // Without overlapping sync a write's promise resolves when it is on disk, which is what we promise.
  return open({ path, maxDbs: MAX_DATABASES, overlappingSync: false, readOnly });
}

function openDatabases(env: RootDatabase) {
  return {
    meta: env.openDB<unknown, string>({ name: 'meta', useVersions: true }),
    subjects: env.openDB<Snapshot, [string, string]>({ name: 'subjects', useVersions: true }),
    nonces: env.openDB<number, [number, string]>({ name: 'nonces' }),
    audit: env.openDB<AuditEntry, number>({ name: 'audit' }),
    changes: env.openDB<readonly (readonly [string, string])[], number>({ name: 'changes' }),
    liveness: env.openDB<[number, string, string, number], string>({ name: 'liveness' }),
  };
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

function lastAudit(audit: Database<AuditEntry, number>): { position: number; hash: string } | null {
  for (const { key, value } of audit.getRange({ reverse: true, limit: 1 })) {
    return { position: key, hash: value.hash };
  }
  return null;
}

function recentAudit(audit: Database<AuditEntry, number>): AuditEntry[] {
  const entries = audit.getRange({ reverse: true, limit: RECENT_AUDIT });
  return [...entries].map(({ value }) => value).reverse();
}

function toStoredSubject(entry: {
  key: [string, string];
  value: Snapshot;
  version?: number;
}): StoredSubject {
  const [kind, id] = entry.key;
  return { kind, id, version: entry.version ?? 0, snapshot: entry.value };
}

function inFlightKey({ kind, id }: { kind: string; id: string }): string {
  return `${kind} ${id}`;
}

function bucketOf(instant: number): number {
  return Math.ceil(instant / NONCE_BUCKET_MS) * NONCE_BUCKET_MS;
}
