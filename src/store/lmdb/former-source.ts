/**
 * Reads a state in a layout before the present one, as a program that has stopped left it.
 *
 * | Schema | Subjects | Nonces | Audit |
 * | --- | --- | --- | --- |
 * | 2 | values of a shape | a row each | a row each, with its hash as a member |
 * | 3 | values of a shape | the digests of a flush | the entries of a flush, each a line of hash and hashed text |
 *
 * No row had a checksum. Which revisions had changed which subjects was kept as well, and is not any more.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { parseJson } from '../../base/json/parse.ts';
import { decodeLine } from '../audit-rows.ts';
import type { NetworkIdentity } from '../network-identity.ts';
import { decodeUnchecked } from '../rows.ts';
import { createShapes, type Shape, type StoredSnapshot } from '../shapes.ts';
import { type AuditEntry, GENESIS_HASH, type StoredSubject } from '../store.ts';
import type { StateFacts, StateSource } from '../stream/ports.ts';
import type { NonceRow, StreamRows, StreamTable } from '../stream/rows.ts';
import { openEnvironment, openMeta } from './environment.ts';
import { checkForReading, DATABASE_FILE } from './folder-state.ts';
import { SCHEMA_VERSION } from './ownership.ts';
import { inBatches } from './stored-rows.ts';

/** The version of the layout; null when the folder holds no state. */
export function readSchemaVersion(dataDir: string): number | null {
  if (!existsSync(join(dataDir, DATABASE_FILE))) return null;
  checkForReading(dataDir);
  const env = openEnvironment(dataDir, true);
  try {
    return schemaIn(env);
  } finally {
    void env.close();
  }
}

/** Small numbers have the same byte in every layout so far. */
function schemaIn(env: RootDatabase): number | null {
  // There is none in a database that was never written.
  const meta: ReturnType<typeof openMeta> | undefined = openMeta(env);
  return meta?.get('schema')?.[0] ?? null;
}

/** `network` is whose the folder is: these layouts do not say it. Throws one sentence when it may be in use. */
export function openFormerSource(dataDir: string, network: NetworkIdentity): StateSource {
  checkForReading(dataDir);
  const env = openEnvironment(dataDir, true);
  const version = schemaIn(env) ?? SCHEMA_VERSION;
  const tables = openFormerTables(env);
  const { held = false, pid = 0 } = (tables.meta.get('owner') ?? {}) as Owner;
  if (held && isRunning(pid)) {
    void env.close();
    throw new Error(`The process ${pid} may serve ${dataDir}: stop it first`);
  }
  const readers: Readers = {
    subjects: () => subjectsIn(tables),
    nonces: () => (version < 3 ? singleNonces(tables) : flushedNonces(tables)),
    audit: () => auditIn(tables, version),
    liveness: () =>
      inBatches('liveness', tables.liveness.getRange(), ({ key: id, value }) => {
        const [lastSeen, status, remoteAddr, newestSignedAt] = value;
        return { id, lastSeen, status, remoteAddr, newestSignedAt };
      }),
  };
  return {
    facts: factsOf(tables, version, network),
    database: { backend: 'lmdb', schemaVersion: version },
    rows: <Table extends StreamTable>(table: Table) => readers[table](),
    close: () => env.close(),
  };
}

type Readers = {
  readonly [Table in StreamTable]: () => AsyncIterable<readonly StreamRows[Table][]>;
};

interface Owner {
  readonly pid?: number;
  readonly held?: boolean;
}

type FormerTables = ReturnType<typeof openFormerTables>;
type FormerContact = readonly [number, string, string, number];

function openFormerTables(env: RootDatabase) {
  return {
    meta: env.openDB<unknown, string>({ name: 'meta', useVersions: true }),
    subjects: env.openDB<Buffer, [string, string]>({
      name: 'subjects',
      useVersions: true,
      encoding: 'binary',
    }),
    nonces: env.openDB<unknown, [number, string | number]>({ name: 'nonces' }),
    audit: env.openDB<string, number>({ name: 'audit', encoding: 'string' }),
    changes: env.openDB<unknown, number>({ name: 'changes' }),
    liveness: env.openDB<FormerContact, string>({ name: 'liveness' }),
  };
}

/** A process id may have been given anew: then it says so, and the state waits for a person. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function factsOf(tables: FormerTables, version: number, network: NetworkIdentity): StateFacts {
  const [lastEntry] = tables.audit.getRange({ reverse: true, limit: 1 });
  const auditHead =
    lastEntry === undefined
      ? GENESIS_HASH
      : (entriesIn(lastEntry.value, version).at(-1)?.hash ?? GENESIS_HASH);
  return {
    network,
    epoch: 0,
    revision: revisionOf(tables, version),
    auditLength: lastEntry?.key ?? 0,
    auditHead,
    isClosed: tables.meta.get('closed_cleanly') === true,
    forgottenTimes: [],
    unstoredTimes: [],
  };
}

function revisionOf({ meta, changes }: FormerTables, version: number): number {
  if (version < 3) return Number(meta.get('revision') ?? 0);
  const [last = 0] = changes.getKeys({ reverse: true, limit: 1 });
  return last;
}

function subjectsIn({ meta, subjects }: FormerTables): AsyncIterable<readonly StoredSubject[]> {
  const shapes = createShapes((meta.get('shapes') ?? []) as readonly Shape[]);
  const same = <T>(value: T) => value;
  const rows = subjects.getRange({ versions: true });
  return inBatches('subjects', rows, ({ key: [kind, id], value, version: written = 0 }) => {
    const snapshot = shapes.build(decodeUnchecked(value) as StoredSnapshot, same);
    return { kind, id, version: written, snapshot };
  });
}

/** Those that may be forgotten in the same minute are one row now. */
async function* singleNonces(tables: FormerTables): AsyncIterable<readonly NonceRow[]> {
  const revision = revisionOf(tables, 2);
  let bucket: number | null = null;
  let digests: string[] = [];
  for (const [next, digest] of tables.nonces.getKeys()) {
    if (bucket !== null && next !== bucket) {
      yield [{ bucket, revision, digests, answers: [] }];
      digests = [];
    }
    bucket = next;
    digests.push(String(digest));
  }
  if (bucket !== null) yield [{ bucket, revision, digests, answers: [] }];
}

function flushedNonces({ nonces }: FormerTables): AsyncIterable<readonly NonceRow[]> {
  return inBatches('nonces', nonces.getRange(), ({ key: [bucket, revision], value }) => ({
    bucket,
    revision: Number(revision),
    digests: value as readonly string[],
    answers: [],
  }));
}

async function* auditIn(
  { audit }: FormerTables,
  version: number,
): AsyncIterable<readonly AuditEntry[]> {
  const rows = inBatches('audit', audit.getRange(), ({ value }) => entriesIn(value, version));
  for await (const batch of rows) yield batch.flat();
}

function entriesIn(row: string, version: number): readonly AuditEntry[] {
  if (version < 3) return [parseJson(row) as unknown as AuditEntry];
  return row.split('\n').map(decodeLine);
}
