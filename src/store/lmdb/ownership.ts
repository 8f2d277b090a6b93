/**
 * The owner of a store, recorded in the store itself. Each owner takes the next number, and every write is conditional
 * on it, so that a process whose folder lock was bypassed cannot write after the next owner has taken over.
 */
import { hostname } from 'node:os';
import type { GetOptions, RootDatabase } from 'lmdb';
import { encodeMeta, metaValue } from '../meta-rows.ts';
import { assertNotMoved } from '../move/marks.ts';
import {
  asFounded,
  assertSameNetwork,
  type NetworkIdentity,
  successorRow,
} from '../network-identity.ts';
import { DamagedState, decodeRow, encodeRow, OtherSchema } from '../rows.ts';
import type { PreviousOwner } from '../store.ts';
import type { OpenTables } from './tables.ts';

export const SCHEMA_VERSION = 5;

/** The kind of database, and the row layout that this program reads and writes. */
export const DATABASE = { backend: 'lmdb', schemaVersion: SCHEMA_VERSION } as const;

interface OwnerRow {
  readonly pid: number;
  readonly host: string;
  readonly state: 'open' | 'closed';
}

export interface Ownership {
  /** The version of the owner's row for as long as this process owns the store. */
  readonly number: number;
  readonly previousOwner: PreviousOwner;
}

/** Takes ownership for this process, in one transaction that is on disk when this returns. */
export function takeOwnership(
  env: RootDatabase,
  { meta, subjects }: OpenTables,
  network: NetworkIdentity | null,
): Ownership {
  assertNotMoved(meta, 'the data directory');
  const entry = meta.getEntry('owner');
  const number = (entry?.version ?? 0) + 1;
  const previous =
    entry === undefined
      ? null
      : (decodeRow('meta', 'owner', entry.value, entry.version) as OwnerRow);
  const whose = metaValue(meta, 'network');
  if (whose !== null && network !== null) {
    const isSuccessor = subjects.doesExist(successorRow(network));
    assertSameNetwork(whose, asFounded(whose, network, isSuccessor), 'the data directory');
  }
  env.transactionSync(() => {
    meta.putSync('schema', Buffer.of(SCHEMA_VERSION));
    meta.putSync('owner', ownerRow('open', number), number);
    if (whose === null && network !== null) meta.putSync('network', encodeMeta('network', network));
  });
  return { number, previousOwner: endOf(previous) };
}

/** The only row without a checksum: it determines how the others are read. */
export function assertSchema(row: Buffer | undefined, isNew: boolean): void {
  if (row === undefined && isNew) return;
  const version = row?.length === 1 ? row[0] : undefined;
  if (version === undefined) throw new DamagedState('its schema version cannot be read');
  if (version !== SCHEMA_VERSION) {
    throw new OtherSchema('The data directory', version, SCHEMA_VERSION);
  }
}

/** Whether the last owner closed the store cleanly. */
export function isClosed({ meta }: OpenTables, options: GetOptions = {}): boolean {
  const entry = meta.getEntry('owner', options);
  if (entry === undefined) return false;
  const owner = decodeRow('meta', 'owner', entry.value, entry.version) as OwnerRow;
  return owner.state === 'closed';
}

export function ownerRow(state: OwnerRow['state'], number: number): Buffer {
  return encodeRow('meta', 'owner', { pid: process.pid, host: hostname(), state }, number);
}

function endOf(previous: OwnerRow | null): PreviousOwner {
  if (previous === null) return 'none';
  return previous.state === 'closed' ? 'closed' : 'lost';
}
