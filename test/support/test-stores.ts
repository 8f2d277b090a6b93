/**
 * Where the authorities of tests keep their state: in their folder or, with `MESH_TEST_STORE=postgresql`, in a
 * database for each folder, so that the entire suite can check what does not depend on the store.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Flags } from '../../src/server/config/options.ts';
import { openLmdbSource, readAuditEntries } from '../../src/store/lmdb/source.ts';
import { openLmdbStore } from '../../src/store/lmdb/store.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { openPostgresqlSource, readAuditLog } from '../../src/store/postgresql/source.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import type { AuditEntry, Store } from '../../src/store/store.ts';
import type { StateSource } from '../../src/store/stream/ports.ts';
import { type EmptyStores, emptyStores } from './empty-stores.ts';
import { storeOptions } from './postgresql-store.ts';

/** Whether the state of authorities is in a database. */
export const IN_DATABASE = process.env.MESH_TEST_STORE === 'postgresql';

/**
 * For tests about a state in the data folder, which read, copy or damage its files, or do what a database would refuse.
 */
export const LMDB_ONLY = { skip: IN_DATABASE };

let reached: Promise<EmptyStores> | undefined;
/** Addresses of databases by folder, so that a restarted authority finds its state. */
const databases = new Map<string, Promise<string>>();

/** Settings that an authority on this folder needs to find its state, in addition to those in the folder. */
export async function storeFlags(dataDir: string): Promise<Flags> {
  if (!IN_DATABASE) return {};
  const known = databases.get(dataDir);
  if (known !== undefined) return { store: await known };
  reached ??= emptyStores();
  const made = reached.then(({ createStore }) => createStore());
  databases.set(dataDir, made);
  const store = await made;
  nameIn(dataDir, store);
  return { store };
}

/** Lets commands that tests run on the folder find the same database as the authority. */
function nameIn(dataDir: string, store: string): void {
  const path = join(dataDir, 'mesh-na.json');
  if (!existsSync(path)) return;
  const settings = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...settings, store }));
}

interface InFolder {
  readonly dataDir: string;
}

/** The audit log of the authority on this folder, in order; it may be running. */
export async function auditEntriesOf({ dataDir }: InFolder): Promise<AuditEntry[]> {
  const url = await databases.get(dataDir);
  if (url === undefined) return [...readAuditEntries(dataDir)];
  const entries: AuditEntry[] = [];
  for await (const entry of readAuditLog(parseStoreAddress(url, {}))) entries.push(entry);
  return entries;
}

/** The state of the authority on this folder as of now; it may be running. */
export async function sourceOf({ dataDir }: InFolder): Promise<StateSource> {
  const url = await databases.get(dataDir);
  return url === undefined
    ? openLmdbSource(dataDir)
    : openPostgresqlSource(parseStoreAddress(url, {}));
}

/** The store of the authority on this folder, which must not be running. */
export async function openStoreOf({ dataDir }: InFolder): Promise<Store> {
  const { store } = await storeFlags(dataDir);
  return typeof store === 'string'
    ? openPostgresqlStore(storeOptions(store))
    : openLmdbStore(dataDir);
}

/** A digest of the stored state, which stays the same as long as nothing is written. */
export async function stateDigest(na: InFolder): Promise<string> {
  return createHash('sha256')
    .update(await storedBytes(na))
    .digest('hex');
}

/** Everything that is stored, in no particular format. */
export async function storedBytes({ dataDir }: InFolder): Promise<Buffer> {
  const url = await databases.get(dataDir);
  if (url === undefined) return readFileSync(join(dataDir, 'state', 'data.mdb'));
  const values: unknown[] = [];
  for (const table of ['meta', 'subjects', 'nonces', 'audit', 'liveness', 'history']) {
    const statement = `select * from mesh_na.${table} stored order by stored::text`;
    const rows = await (await reached)?.query(nameOf(url), statement);
    values.push(...(rows ?? []).flatMap(Object.values));
  }
  return Buffer.concat(
    values.map((value) => (Buffer.isBuffer(value) ? value : Buffer.from(String(value)))),
  );
}

/** Removes the database, because those of hundreds of tests would fill the disk. */
export async function removeStore(dataDir: string): Promise<void> {
  const url = await databases.get(dataDir);
  if (url === undefined) return;
  databases.delete(dataDir);
  await (await reached)?.remove(url);
}

function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}
