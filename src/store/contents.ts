/** The state as a start loads it. Every row is checked, and missing rows are detected. */
import { readEnd } from './audit-log.ts';
import type { Shapes } from './shapes.ts';
import type { StoreContents, StoredLiveness, StoredSubject } from './store.ts';
import {
  decodeAnswers,
  decodeNonces,
  decodeTimes,
  livenessReader,
  type NonceKey,
  subjectReader,
} from './table-rows.ts';
import { counted, type MetaRows, type TableReader } from './tables.ts';
import { totalsIn } from './totals.ts';

export type Contents = Omit<StoreContents, 'previousOwner' | 'dispose'>;

export async function contentsOf(
  tables: TableReader,
  meta: MetaRows,
  shapes: Shapes,
): Promise<Contents> {
  const totals = totalsIn(meta);
  return {
    revision: totals.revision,
    subjects: subjectsIn(tables, shapes, totals.subjects),
    nonces: flat(
      counted(
        'nonces',
        totals.nonceRows,
        tables.scan('nonces', ({ key, row }) => decodeNonces(key as NonceKey, row)),
      ),
    ),
    answers: flat(tables.scan('answers', ({ key, row }) => decodeAnswers(key as NonceKey, row))),
    forgottenTimes: decodeTimes('forgotten_times', meta.get('forgotten_times')),
    unstoredTimes: decodeTimes('unstored_times', meta.get('unstored_times')),
    liveness: livenessIn(tables),
    auditLength: totals.auditEntries,
    ...(await readEnd(tables, totals.auditEntries)),
  };
}

export function subjectsIn(
  tables: TableReader,
  shapes: Shapes,
  total: number,
): AsyncIterable<readonly StoredSubject[]> {
  const read = subjectReader(shapes);
  const subjects = tables.scan('subjects', ({ key, version, row }) => {
    const [kind, id] = key as readonly [string, string];
    return read(kind, id, version, row);
  });
  return counted('subjects', total, subjects);
}

export function livenessIn(tables: TableReader): AsyncIterable<readonly StoredLiveness[]> {
  const read = livenessReader();
  return tables.scan('liveness', ({ key, row }) => read(key as string, row));
}

async function* flat<Item>(
  batches: AsyncIterable<readonly (readonly Item[])[]>,
): AsyncGenerator<readonly Item[], void> {
  for await (const batch of batches) yield batch.flat();
}
