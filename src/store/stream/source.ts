/** Reads a state in the form of the portable stream, from any database. */
import { readEntries } from '../audit-log.ts';
import { livenessIn, subjectsIn, summaryOf } from '../contents.ts';
import { metaValue, shapesIn } from '../meta-rows.ts';
import type { NetworkIdentity } from '../network-identity.ts';
import {
  decodeDigests,
  decodeHistory,
  decodeStoredAnswers,
  type NonceKey,
  type StoredAnswer,
} from '../table-rows.ts';
import { counted, type TableReader } from '../tables.ts';
import type { StateReading } from './ports.ts';
import type { NonceRow, StreamRows, StreamTable } from './rows.ts';

export interface ReadingParts extends Pick<StateReading, 'database' | 'tables' | 'meta'> {
  readonly network: NetworkIdentity;
  readonly isClosed: boolean;
}

export async function readingOf(parts: ReadingParts): Promise<StateReading> {
  const { tables, meta, network, isClosed } = parts;
  const { subjects, nonceRows, auditEntries } = metaValue(meta, 'totals');
  const shapes = shapesIn(meta);
  const { recentAudit: _shown, ...summary } = await summaryOf(tables, meta);
  const read: {
    readonly [Table in StreamTable]: () => AsyncIterable<readonly StreamRows[Table][]>;
  } = {
    subjects: () => subjectsIn(tables, shapes, subjects),
    nonces: () => nonceRowsIn(tables, nonceRows),
    audit: () => readEntries(tables, auditEntries),
    liveness: () => livenessIn(tables),
    history: () => tables.scan('history', decodeHistory),
  };
  return {
    ...parts,
    facts: { network, epoch: metaValue(meta, 'epoch'), isClosed, ...summary },
    rows: <Table extends StreamTable>(table: Table) => read[table](),
  };
}

/** Nonce rows, joined with the answers that are stored under the same key. */
async function* nonceRowsIn(
  tables: TableReader,
  total: number,
): AsyncGenerator<readonly NonceRow[], void> {
  const nonces = tables.scan('nonces', (stored) => ({
    key: stored.key as NonceKey,
    digests: decodeDigests(stored),
  }));
  const answersAt = keptAnswers(tables);
  for await (const batch of counted('nonces', total, nonces)) {
    const found: NonceRow[] = [];
    for (const { key, digests } of batch) {
      const [bucket, revision] = key;
      found.push({ bucket, revision, digests, answers: await answersAt(key) });
    }
    yield found;
  }
}

/** Returns a function that looks up the answers stored under a key. Call it with the keys of all nonces, in order. */
function keptAnswers(tables: TableReader): (key: NonceKey) => Promise<readonly StoredAnswer[]> {
  const rows = answerRows(tables);
  let next: Awaited<ReturnType<typeof rows.next>> | null = null;
  return async ([bucket, revision]) => {
    next ??= await rows.next();
    if (next.done === true) return [];
    const { key, answers } = next.value;
    if (key[0] !== bucket || key[1] !== revision) return [];
    next = null;
    return answers;
  };
}

async function* answerRows(tables: TableReader) {
  const batches = tables.scan('answers', (stored) => ({
    key: stored.key as NonceKey,
    answers: decodeStoredAnswers(stored),
  }));
  for await (const batch of batches) yield* batch;
}
