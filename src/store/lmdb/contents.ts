/** Loads the state from LMDB at a start. Every row is checked, and missing rows are detected. */
import { DamagedState, type TableName } from '../rows.ts';
import type { Shapes } from '../shapes.ts';
import type {
  KeptAnswer,
  SpentNonce,
  StoreContents,
  StoredLiveness,
  StoredSubject,
} from '../store.ts';
import {
  decodeAnswers,
  decodeNonces,
  decodeTimes,
  livenessReader,
  subjectReader,
} from '../table-rows.ts';
import { assertTotal, decodeTotals, type Totals } from '../totals.ts';
import { readAuditEnd } from './audit.ts';
import type { Tables } from './environment.ts';

/** Enough rows to make the steps of the iteration cheap, few enough to be collected young. */
const BATCH_ROWS = 500;

export function readTotals({ meta }: Tables): Totals {
  return decodeTotals(meta.get('totals'));
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
    answers: answersIn(tables),
    forgottenTimes: decodeTimes('forgotten_times', tables.meta.get('forgotten_times')),
    unstoredTimes: decodeTimes('unstored_times', tables.meta.get('unstored_times')),
    liveness: livenessIn(tables),
    auditLength: totals.auditEntries,
    ...readAuditEnd(tables),
  };
}

function subjectsIn(
  { subjects }: Tables,
  shapes: Shapes,
  total: number,
): AsyncIterable<readonly StoredSubject[]> {
  const read = subjectReader(shapes);
  const rows = subjects.getRange({ versions: true });
  return inBatches('subjects', total, rows, ({ key, value, version = 0 }) =>
    read(key[0], key[1], version, value),
  );
}

function livenessIn({ liveness }: Tables): AsyncIterable<readonly StoredLiveness[]> {
  const read = livenessReader();
  return inBatches('liveness', null, liveness.getRange(), ({ key, value }) => read(key, value));
}

async function* noncesIn({ nonces }: Tables, total: number): AsyncIterable<readonly SpentNonce[]> {
  const rows = inBatches('nonces', total, nonces.getRange(), ({ key, value }) =>
    decodeNonces(key, value),
  );
  for await (const batch of rows) yield batch.flat();
}

async function* answersIn({ answers }: Tables): AsyncIterable<readonly KeptAnswer[]> {
  const rows = inBatches('answers', null, answers.getRange(), ({ key, value }) =>
    decodeAnswers(key, value),
  );
  for await (const batch of rows) yield batch.flat();
}

/** `total` is the expected number of rows; null when it is not known. */
export async function* inBatches<Row, Item>(
  table: TableName,
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

/** The last key of an append-only table; 0 when it is empty. */
function lastKey(backwards: Iterable<number>): number {
  for (const key of backwards) return key;
  return 0;
}
