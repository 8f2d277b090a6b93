/** A state as a stream takes it, whatever database it is in. */
import { auditEntriesIn, livenessIn, subjectsIn } from '../contents.ts';
import type { NetworkIdentity } from '../network-identity.ts';
import { decodeRow } from '../rows.ts';
import { createShapes } from '../shapes.ts';
import { compareKeys, counted, headOf, type MetaRows, type RowReader } from '../stored-rows.ts';
import {
  decodeAnswers,
  decodeEpoch,
  decodeNonces,
  decodeShapes,
  decodeTimes,
  type NonceKey,
} from '../table-rows.ts';
import { totalsIn } from '../totals.ts';
import type { StateFacts, StateSource } from './ports.ts';
import type { NonceRow, StreamRows, StreamTable } from './rows.ts';

export interface SourceParts extends Pick<StateSource, 'database' | 'close'> {
  readonly rows: RowReader;
  readonly meta: MetaRows;
  readonly auditHead: string;
  readonly isClosed: boolean;
}

/** `network` is the row that says whose the state is. */
export function sourceOf(network: Buffer, parts: SourceParts): StateSource {
  const { rows, meta, database, close } = parts;
  const totals = totalsIn(meta);
  const facts: StateFacts = {
    network: decodeRow('meta', 'network', network) as NetworkIdentity,
    epoch: decodeEpoch(meta.get('epoch')),
    revision: totals.revision,
    auditLength: totals.auditEntries,
    auditHead: parts.auditHead,
    isClosed: parts.isClosed,
    forgottenTimes: decodeTimes('forgotten_times', meta.get('forgotten_times')),
    unstoredTimes: decodeTimes('unstored_times', meta.get('unstored_times')),
  };
  const shapes = createShapes(decodeShapes(meta.get('shapes')));
  const read: {
    readonly [Table in StreamTable]: () => AsyncIterable<readonly StreamRows[Table][]>;
  } = {
    subjects: () => subjectsIn(rows, shapes, totals.subjects),
    nonces: () => nonceRowsIn(rows, totals.nonceRows),
    audit: () => auditEntriesIn(rows, totals.auditEntries),
    liveness: () => livenessIn(rows),
  };
  return {
    facts,
    database,
    rows: <Table extends StreamTable>(table: Table) => read[table](),
    close,
  };
}

/** Nonces, each row with the answers that are kept with it under the same key. */
async function* nonceRowsIn(
  rows: RowReader,
  total: number,
): AsyncGenerator<readonly NonceRow[], void> {
  const nonces = rows.scan('nonces', ({ key, row }) => ({
    key: key as NonceKey,
    digests: decodeNonces(key as NonceKey, row).map(({ digest }) => digest),
  }));
  const answersAt = keptAnswers(rows);
  for await (const batch of counted('nonces', total, nonces)) {
    const found: NonceRow[] = [];
    for (const { key, digests } of batch) {
      const [bucket, revision] = key;
      found.push({ bucket, revision, digests, answers: await answersAt(key) });
    }
    yield found;
  }
}

/** Asks for the answers under a key; call with one key after another, in their order. */
function keptAnswers(rows: RowReader): (key: NonceKey) => Promise<NonceRow['answers']> {
  const answers = headOf(
    rows.scan('answers', ({ key, row }) => {
      const decoded = decodeAnswers(key as NonceKey, row);
      return {
        key,
        answers: decoded.map((kept) => [kept.digest, kept.request, kept.answer] as const),
      };
    }),
  );
  return async (key) => {
    for (;;) {
      if (answers.isSpent()) await answers.fetch();
      const next = answers.item();
      const order = next === undefined ? 1 : compareKeys(next.key, key);
      if (order > 0) return [];
      answers.step();
      if (order === 0) return next?.answers ?? [];
    }
  };
}
