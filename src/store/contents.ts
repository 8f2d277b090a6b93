/** Loads the state at startup. Every row is checked, and missing rows are detected. */
import { LOG_START, type LogPosition, readEnd } from './audit-log.ts';
import { type MetaRows, metaValue } from './meta-rows.ts';
import { DamagedState } from './rows.ts';
import type { Shapes } from './shapes.ts';
import type { Contents, StoredHistory, StoredLiveness, StoredSubject } from './store.ts';
import {
  decodeAnswers,
  decodeHistory,
  decodeNonces,
  livenessReader,
  subjectReader,
} from './table-rows.ts';
import { counted, type TableReader } from './tables.ts';

export async function contentsOf(
  tables: TableReader,
  meta: MetaRows,
  shapes: Shapes,
): Promise<Contents> {
  const { subjects, nonceRows } = metaValue(meta, 'totals');
  const nonces = tables.scan('nonces', decodeNonces);
  const answers = tables.scan('answers', decodeAnswers);
  return {
    ...(await summaryOf(tables, meta)),
    subjects: subjectsIn(tables, shapes, subjects),
    nonces: flat(counted('nonces', nonceRows, nonces)),
    answers: flat(answers),
    liveness: livenessIn(tables),
  };
}

/** The metadata of the state; `since` is where an earlier read ended. */
export async function summaryOf(
  tables: TableReader,
  meta: MetaRows,
  since: LogPosition = LOG_START,
) {
  const { revision, auditEntries } = metaValue(meta, 'totals');
  return {
    revision,
    forgottenTimes: metaValue(meta, 'forgotten_times'),
    unstoredTimes: metaValue(meta, 'unstored_times'),
    auditLength: auditEntries,
    ...(await readEnd(tables, auditEntries, since)),
  };
}

export function subjectsIn(
  tables: TableReader,
  shapes: Shapes,
  total: number,
): AsyncIterable<readonly StoredSubject[]> {
  return counted('subjects', total, tables.scan('subjects', subjectReader(shapes)));
}

/** The subjects of one kind, sorted by id. */
export async function subjectsOf(
  tables: TableReader,
  shapes: Shapes,
  kind: string,
): Promise<readonly StoredSubject[]> {
  const found: StoredSubject[] = [];
  const read = subjectReader(shapes);
  for await (const batch of tables.scan('subjects', read, { after: [kind, ''], atOnce: 1 })) {
    for (const subject of batch) {
      if (subject.kind !== kind) return found;
      found.push(subject);
    }
  }
  return found;
}

export function livenessIn(tables: TableReader): AsyncIterable<readonly StoredLiveness[]> {
  return tables.scan('liveness', livenessReader());
}

/** The rows of the history that are not damaged. */
export async function* historyIn(tables: TableReader): AsyncIterable<readonly StoredHistory[]> {
  const batches = tables.scan('history', (stored) => {
    try {
      return [decodeHistory(stored)];
    } catch (cause) {
      if (cause instanceof DamagedState) return [];
      throw cause;
    }
  });
  yield* flat(batches);
}

async function* flat<Item>(
  batches: AsyncIterable<readonly (readonly Item[])[]>,
): AsyncGenerator<readonly Item[], void> {
  for await (const batch of batches) yield batch.flat();
}
