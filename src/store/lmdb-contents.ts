/** Loads the state from LMDB at a start. Every row is checked, and missing rows are detected. */

import { readAuditEnd } from './lmdb-audit.ts';
import type { Tables } from './lmdb-environment.ts';
import { DamagedState, decodeRow, encodeRow } from './lmdb-rows.ts';
import type { Shapes, StoredSnapshot } from './shapes.ts';
import { createSharing } from './sharing.ts';
import type {
  SpentNonce,
  StoreContents,
  StoredLiveness,
  StoredSubject,
  TimeRange,
} from './store.ts';

/** Enough rows to make the steps of the iteration cheap, few enough to be collected young. */
const BATCH_ROWS = 500;

/** Row counts of the tables: written with every unit, so that a missing row is detected. */
export interface Totals {
  readonly revision: number;
  readonly subjects: number;
  /** The rows of the table, each with the nonces of one flush. */
  readonly nonceRows: number;
  readonly auditEntries: number;
}

const NOTHING: Totals = { revision: 0, subjects: 0, nonceRows: 0, auditEntries: 0 };

export function readTotals({ meta }: Tables): Totals {
  const row = meta.get('totals');
  return row === undefined ? NOTHING : (decodeRow('meta', 'totals', row) as Totals);
}

export function totalsRow(totals: Totals): Buffer {
  return encodeRow('meta', 'totals', totals);
}

/** Keys of rows that hold signing times. */
export type TimesKey = 'forgotten_times' | 'unstored_times';

function readTimes({ meta }: Tables, key: TimesKey): readonly TimeRange[] {
  const row = meta.get(key);
  return row === undefined ? [] : (decodeRow('meta', key, row) as readonly TimeRange[]);
}

export function timesRow(key: TimesKey, times: readonly TimeRange[]): Buffer {
  return encodeRow('meta', key, times);
}

export type LmdbContents = Omit<StoreContents, 'previousOwner' | 'dispose'>;

export function readContents(tables: Tables, shapes: Shapes, totals: Totals): LmdbContents {
  assertTotal(
    'audit',
    lastKey(tables.audit.getKeys({ reverse: true, limit: 1 })),
    totals.auditEntries,
  );
  return {
    revision: totals.revision,
    subjects: subjectsIn(tables, shapes, totals.subjects),
    nonces: noncesIn(tables, totals.nonceRows),
    forgottenTimes: readTimes(tables, 'forgotten_times'),
    unstoredTimes: readTimes(tables, 'unstored_times'),
    liveness: livenessIn(tables),
    ...readAuditEnd(tables),
  };
}

function subjectsIn(
  { subjects }: Tables,
  shapes: Shapes,
  total: number,
): AsyncIterable<readonly StoredSubject[]> {
  const share = createSharing();
  const rows = subjects.getRange({ versions: true });
  return inBatches('subjects', total, rows, ({ key, value, version = 0 }) => {
    const stored = decodeRow('subjects', key, value, version) as StoredSnapshot;
    return { kind: share(key[0], 0), id: key[1], version, snapshot: shapes.build(stored, share) };
  });
}

function livenessIn({ liveness }: Tables): AsyncIterable<readonly StoredLiveness[]> {
  const share = createSharing();
  return inBatches('liveness', null, liveness.getRange(), ({ key, value }) => {
    const [lastSeen, status, remoteAddr, newestSignedAt] = decodeRow('liveness', key, value) as [
      number,
      string,
      string,
      number,
    ];
    return {
      id: key,
      lastSeen,
      status: share(status, 0),
      remoteAddr: share(remoteAddr, 1),
      newestSignedAt,
    };
  });
}

async function* noncesIn({ nonces }: Tables, total: number): AsyncIterable<readonly SpentNonce[]> {
  const rows = inBatches('nonces', total, nonces.getRange(), ({ key, value }) => {
    const digests = decodeRow('nonces', key, value) as readonly string[];
    return digests.map((digest) => ({ digest, forgetAt: key[0] }));
  });
  for await (const batch of rows) yield batch.flat();
}

/** `total` is the expected number of rows; null when it is not known. */
async function* inBatches<Row, Item>(
  table: 'subjects' | 'nonces' | 'liveness',
  total: number | null,
  rows: Iterable<Row>,
  read: (row: Row) => Item,
): AsyncIterable<readonly Item[]> {
  let count = 0;
  let batch: Item[] = [];
  try {
    for (const row of rows) {
      batch.push(read(row));
      if (batch.length < BATCH_ROWS) continue;
      count += batch.length;
      yield batch;
      batch = [];
    }
  } catch (cause) {
    if (cause instanceof DamagedState) throw cause;
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new DamagedState(`table ${table} cannot be read (${problem})`);
  }
  yield batch;
  if (total !== null) assertTotal(table, count + batch.length, total);
}

function assertTotal(table: string, found: number, total: number): void {
  if (found !== total) {
    throw new DamagedState(`table ${table} holds ${found} entries where ${total} were stored`);
  }
}

/** The last key of an append-only table; 0 when it is empty. */
function lastKey(backwards: Iterable<number>): number {
  for (const key of backwards) return key;
  return 0;
}
