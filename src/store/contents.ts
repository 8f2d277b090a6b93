/** The state as a start loads it. Every row is checked, and missing rows are detected. */
import { decodeEntries } from './audit-rows.ts';
import { DamagedState } from './rows.ts';
import type { Shapes } from './shapes.ts';
import type { AuditEntry, StoreContents, StoredLiveness, StoredSubject } from './store.ts';
import { counted, type MetaRows, type RowReader } from './stored-rows.ts';
import {
  decodeAnswers,
  decodeNonces,
  decodeTimes,
  livenessReader,
  type NonceKey,
  subjectReader,
} from './table-rows.ts';
import { assertTotal, totalsIn } from './totals.ts';

/** What the last rows of the audit log say is read apart. */
export type TableContents = Omit<
  StoreContents,
  'previousOwner' | 'dispose' | 'recentAudit' | 'auditHead'
>;

export function contentsOf(rows: RowReader, meta: MetaRows, shapes: Shapes): TableContents {
  const totals = totalsIn(meta);
  return {
    revision: totals.revision,
    subjects: subjectsIn(rows, shapes, totals.subjects),
    nonces: flat(
      counted(
        'nonces',
        totals.nonceRows,
        rows.scan('nonces', ({ key, row }) => decodeNonces(key as NonceKey, row)),
      ),
    ),
    answers: flat(rows.scan('answers', ({ key, row }) => decodeAnswers(key as NonceKey, row))),
    forgottenTimes: decodeTimes('forgotten_times', meta.get('forgotten_times')),
    unstoredTimes: decodeTimes('unstored_times', meta.get('unstored_times')),
    liveness: livenessIn(rows),
    auditLength: totals.auditEntries,
  };
}

export function subjectsIn(
  rows: RowReader,
  shapes: Shapes,
  total: number,
): AsyncIterable<readonly StoredSubject[]> {
  const read = subjectReader(shapes);
  const subjects = rows.scan('subjects', ({ key, version, row }) => {
    const [kind, id] = key as readonly [string, string];
    return read(kind, id, version, row);
  });
  return counted('subjects', total, subjects);
}

export function livenessIn(rows: RowReader): AsyncIterable<readonly StoredLiveness[]> {
  const read = livenessReader();
  return rows.scan('liveness', ({ key, row }) => read(key as string, row));
}

/** All entries of the audit log in order. Rejects unless there are `total`. */
export async function* auditEntriesIn(
  rows: RowReader,
  total: number,
): AsyncGenerator<readonly AuditEntry[], void> {
  let last = 0;
  const entries = rows.scan('audit', ({ key, row }) => {
    const decoded = decodeEntries(key as number, row);
    if (last + decoded.length !== key) throw new DamagedState('an audit entry is missing');
    last = key;
    return decoded;
  });
  yield* flat(entries);
  assertTotal('audit', last, total);
}

async function* flat<Item>(
  batches: AsyncIterable<readonly (readonly Item[])[]>,
): AsyncGenerator<readonly Item[], void> {
  for await (const batch of batches) yield batch.flat();
}
