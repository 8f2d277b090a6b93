/** A state as a stream takes it, whatever database it is in. */
import { readEnd, readEntries } from '../audit-log.ts';
import { livenessIn, subjectsIn } from '../contents.ts';
import type { NetworkIdentity } from '../network-identity.ts';
import { createShapes } from '../shapes.ts';
import {
  decodeAnswers,
  decodeEpoch,
  decodeNonces,
  decodeShapes,
  decodeTimes,
  type NonceKey,
} from '../table-rows.ts';
import { compareKeys, counted, headOf, type TableReader } from '../tables.ts';
import { totalsIn } from '../totals.ts';
import type { StateReading } from './ports.ts';
import type { NonceRow, StreamRows, StreamTable } from './rows.ts';

export interface ReadingParts extends Pick<StateReading, 'database' | 'tables' | 'meta'> {
  readonly network: NetworkIdentity;
  readonly isClosed: boolean;
}

export async function readingOf(parts: ReadingParts): Promise<StateReading> {
  const { tables, meta, network, isClosed } = parts;
  const { revision, subjects, nonceRows, auditEntries } = totalsIn(meta);
  const shapes = createShapes(decodeShapes(meta.get('shapes')));
  const read: {
    readonly [Table in StreamTable]: () => AsyncIterable<readonly StreamRows[Table][]>;
  } = {
    subjects: () => subjectsIn(tables, shapes, subjects),
    nonces: () => nonceRowsIn(tables, nonceRows),
    audit: () => readEntries(tables, auditEntries),
    liveness: () => livenessIn(tables),
  };
  return {
    ...parts,
    facts: {
      network,
      epoch: decodeEpoch(meta.get('epoch')),
      revision,
      auditLength: auditEntries,
      auditHead: (await readEnd(tables, auditEntries)).auditHead,
      isClosed,
      forgottenTimes: decodeTimes('forgotten_times', meta.get('forgotten_times')),
      unstoredTimes: decodeTimes('unstored_times', meta.get('unstored_times')),
    },
    rows: <Table extends StreamTable>(table: Table) => read[table](),
  };
}

/** Nonces, each row with the answers that are kept with it under the same key. */
async function* nonceRowsIn(
  tables: TableReader,
  total: number,
): AsyncGenerator<readonly NonceRow[], void> {
  const nonces = tables.scan('nonces', ({ key, row }) => ({
    key: key as NonceKey,
    digests: decodeNonces(key as NonceKey, row).map(({ digest }) => digest),
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

/** Asks for the answers under a key; call with one key after another, in their order. */
function keptAnswers(tables: TableReader): (key: NonceKey) => Promise<NonceRow['answers']> {
  const answers = headOf(
    tables.scan('answers', ({ key, row }) => {
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
