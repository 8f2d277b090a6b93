/**
 * A marker in the data directory that state exists, and whose it is. Without it, an empty or missing
 * database would start a new network under the keys of one that has issued certificates.
 */
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { checkStructure, checkStructureInUse } from './lmdb-structure.ts';

/** Marks that the directory holds state; written when the state is first opened. */
const MARKER_FILE = 'mesh-na.state.json';
const DATABASE_FILE = 'state/data.mdb';
const DATABASE_LOCK_FILE = 'state/lock.mdb';

export const NetworkIdentity = Type.Object({
  network_name: Type.String(),
  root_public_key: Type.String(),
  authority_public_key: Type.String(),
});

/** The owner of the state. None of these members changes when the genesis block is signed again. */
export type NetworkIdentity = Static<typeof NetworkIdentity>;

/** Throws one clear sentence when LMDB could not open the files safely. */
export function checkFiles(dataDir: string): void {
  const database = join(dataDir, DATABASE_FILE);
  if (!existsSync(database)) {
    assertNeverUsed(dataDir, 'missing');
    return;
  }
  for (const name of [DATABASE_FILE, DATABASE_LOCK_FILE]) assertWritable(join(dataDir, name));
  if (statSync(database).size === 0) assertNeverUsed(dataDir, 'empty');
  else checkStructure(database, 'end');
}

/**
 * For those who only read, also while a server is running on the files: whether the database could be
 * checked, which is false when it changed all the while. Throws as `checkFiles` does, also when there is none.
 */
export function checkForReading(dataDir: string): boolean {
  const database = join(dataDir, DATABASE_FILE);
  if (!existsSync(database) || statSync(database).size === 0) {
    throw new Error(`${dataDir} holds no state of an authority`);
  }
  return checkStructureInUse(database);
}

function assertNeverUsed(dataDir: string, found: 'missing' | 'empty'): void {
  const marker = readMarker(dataDir);
  if (marker === null) return;
  const whose = marker === 'unreadable' ? '' : ` by the network "${marker.network_name}"`;
  throw new Error(
    `The data directory was in use${whose}, but ${DATABASE_FILE} is ${found}; restore it from a backup`,
  );
}

/** LMDB ends the process when it cannot write one of its files. */
function assertWritable(path: string): void {
  if (!existsSync(path)) return;
  try {
    closeSync(openSync(path, 'r+'));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(
      `The state in the data directory cannot be used: ${path} cannot be written (${code})`,
    );
  }
}

/** Marks the directory as in use. The file is written atomically. */
export function markInUse(dataDir: string, network: NetworkIdentity): void {
  const path = join(dataDir, MARKER_FILE);
  if (existsSync(path)) return;
  const fresh = `${path}.new`;
  writeFileSync(fresh, `${JSON.stringify(network, null, 2)}\n`, { mode: 0o600, flush: true });
  renameSync(fresh, path);
}

function readMarker(dataDir: string): NetworkIdentity | 'unreadable' | null {
  const path = join(dataDir, MARKER_FILE);
  if (!existsSync(path)) return null;
  try {
    const marker: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return Value.Check(NetworkIdentity, marker) ? marker : 'unreadable';
  } catch {
    return 'unreadable';
  }
}

export function assertSameNetwork(stored: NetworkIdentity, given: NetworkIdentity): void {
  const [ours, theirs] = [given.network_name, stored.network_name];
  if (ours !== theirs) {
    throw new Error(
      `The state in the data directory belongs to the network "${theirs}", not to "${ours}"`,
    );
  }
  for (const key of ['root_public_key', 'authority_public_key'] as const) {
    if (stored[key] === given[key]) continue;
    const name = key === 'root_public_key' ? 'root key' : 'authority key';
    throw new Error(
      `The state in the data directory belongs to another network "${theirs}", whose ${name} is ${stored[key]}`,
    );
  }
}
