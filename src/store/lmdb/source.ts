/** Reads a whole state from LMDB at one revision, also while a service in another process writes to it. */
import type { GetOptions, RangeOptions, RootDatabase } from 'lmdb';
import { decodeEntries } from '../audit-rows.ts';
import type { NetworkIdentity } from '../network-identity.ts';
import { DamagedState, decodeRow } from '../rows.ts';
import { createShapes } from '../shapes.ts';
import type { StateFacts, StateSource } from '../stream/ports.ts';
import type { NonceRow, StreamRows, StreamTable } from '../stream/rows.ts';
import {
  decodeAnswers,
  decodeEpoch,
  decodeNonces,
  decodeShapes,
  decodeTimes,
  livenessReader,
  subjectReader,
} from '../table-rows.ts';
import { assertTotal, decodeTotals, type Totals } from '../totals.ts';
import { readAuditEnd } from './audit.ts';
import { inBatches } from './contents.ts';
import { openEnvironment, openMeta, openTables, type Tables } from './environment.ts';
import { checkForReading } from './folder-state.ts';
import { assertSchema, isClosed, SCHEMA_VERSION } from './ownership.ts';

type Transaction = NonNullable<GetOptions['transaction']>;

/** Throws one clear sentence when there is no state, or when it is damaged. */
export function openLmdbSource(dataDir: string): StateSource {
  checkForReading(dataDir);
  const env = openEnvironment(dataDir, true);
  try {
    return sourceIn(env);
  } catch (cause) {
    void env.close();
    throw cause;
  }
}

function sourceIn(env: RootDatabase): StateSource {
  assertSchema(openMeta(env).get('schema'), false);
  const tables = openTables(env);
  const transaction = env.useReadTransaction();
  return sourceAt(tables, transaction, async () => {
    transaction.done();
    await env.close();
  });
}

/** The state that the transaction sees. */
export function sourceAt(
  tables: Tables,
  transaction: Transaction,
  close: () => Promise<void>,
): StateSource {
  const totals = decodeTotals(tables.meta.get('totals', { transaction }));
  const read = readers(tables, transaction, totals);
  return {
    facts: readFacts(tables, transaction, totals),
    database: { backend: 'lmdb', schemaVersion: SCHEMA_VERSION },
    rows: <Table extends StreamTable>(table: Table) => read[table](),
    close,
  };
}

function readFacts(tables: Tables, transaction: Transaction, totals: Totals): StateFacts {
  const { meta } = tables;
  const network = meta.get('network', { transaction });
  if (network === undefined) throw new DamagedState('it does not say whose it is');
  return {
    network: decodeRow('meta', 'network', network) as NetworkIdentity,
    epoch: decodeEpoch(meta.get('epoch', { transaction })),
    revision: totals.revision,
    auditLength: totals.auditEntries,
    auditHead: readAuditEnd(tables, { transaction }).auditHead,
    isClosed: isClosed(tables, { transaction }),
    forgottenTimes: decodeTimes('forgotten_times', meta.get('forgotten_times', { transaction })),
    unstoredTimes: decodeTimes('unstored_times', meta.get('unstored_times', { transaction })),
  };
}

type Readers = {
  readonly [Table in StreamTable]: () => AsyncIterable<readonly StreamRows[Table][]>;
};

function readers(tables: Tables, transaction: Transaction, totals: Totals): Readers {
  const range: RangeOptions = { transaction };
  const shapes = createShapes(decodeShapes(tables.meta.get('shapes', { transaction })));
  return {
    subjects() {
      const read = subjectReader(shapes);
      const rows = tables.subjects.getRange({ ...range, versions: true });
      return inBatches('subjects', totals.subjects, rows, ({ key, value, version = 0 }) =>
        read(key[0], key[1], version, value),
      );
    },
    nonces: () =>
      inBatches('nonces', totals.nonceRows, tables.nonces.getRange(range), ({ key, value }) =>
        nonceRow(tables, transaction, key, value),
      ),
    audit: () => auditEntries(tables, range, totals),
    liveness() {
      const read = livenessReader();
      return inBatches('liveness', null, tables.liveness.getRange(range), ({ key, value }) =>
        read(key, value),
      );
    },
  };
}

function nonceRow(
  { answers }: Tables,
  transaction: Transaction,
  key: [number, number],
  row: Buffer,
): NonceRow {
  const digests = decodeNonces(key, row).map(({ digest }) => digest);
  const kept = answers.get(key, { transaction });
  return {
    bucket: key[0],
    revision: key[1],
    digests,
    answers:
      kept === undefined
        ? []
        : decodeAnswers(key, kept).map(({ digest, request, answer }) => [digest, request, answer]),
  };
}

async function* auditEntries(
  { audit }: Tables,
  range: RangeOptions,
  { auditEntries: total }: Totals,
): AsyncIterable<readonly StreamRows['audit'][]> {
  let last = 0;
  const rows = inBatches('audit', null, audit.getRange(range), ({ key, value }) => {
    const entries = decodeEntries(key, value);
    if (key - entries.length !== last) throw new DamagedState('an audit entry is missing');
    last = key;
    return entries;
  });
  for await (const batch of rows) yield batch.flat();
  assertTotal('audit', last, total);
}
