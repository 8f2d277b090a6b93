/** Reads a whole state from PostgreSQL as of one moment, also while a service writes to it. */
import type { Client } from 'pg';
import type { NetworkIdentity } from '../network-identity.ts';
import { decodeRow } from '../rows.ts';
import { createShapes, type Shapes } from '../shapes.ts';
import type { StateFacts, StateSource } from '../stream/ports.ts';
import type { NonceRow, StreamRows, StreamTable } from '../stream/rows.ts';
import {
  decodeAnswers,
  decodeEpoch,
  decodeNonces,
  decodeShapes,
  decodeTimes,
} from '../table-rows.ts';
import { assertTotal, type Totals } from '../totals.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import {
  auditEntriesIn,
  beginReading,
  fetched,
  livenessIn,
  type MetaRows,
  readAuditEnd,
  subjectsIn,
  totalsIn,
} from './contents.ts';
import { assertSchema, SCHEMA_VERSION } from './schema.ts';

/** The database has the tables, and nobody has written to them. The message is a sentence. */
export class NoStateYet extends Error {}

/** Throws one clear sentence when there is no state, or when it is damaged. */
export async function openPostgresqlSource(address: StoreAddress): Promise<StateSource> {
  const { client, shown } = await connectToPrimary(address);
  try {
    await assertSchema(client, shown);
    return await sourceAt(client, await beginReading(client), shown);
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

/** The state that the transaction of this connection sees. */
export async function sourceAt(
  client: Client,
  meta: MetaRows,
  shown: string,
): Promise<StateSource> {
  const totals = totalsIn(meta);
  const read = readers(client, createShapes(decodeShapes(meta.get('shapes'))), totals);
  return {
    facts: await readFacts(client, meta, totals, shown),
    database: { backend: 'postgresql', schemaVersion: SCHEMA_VERSION },
    rows: <Table extends StreamTable>(table: Table) => read[table](),
    close: () => disconnect(client),
  };
}

async function readFacts(
  client: Client,
  meta: MetaRows,
  totals: Totals,
  shown: string,
): Promise<StateFacts> {
  const network = meta.get('network');
  if (network === undefined) throw new NoStateYet(`The database at ${shown} holds no state`);
  const { rows } = await client.query<{ released: boolean }>(
    'select released from mesh_na.writer_lease',
  );
  return {
    network: decodeRow('meta', 'network', network) as NetworkIdentity,
    epoch: decodeEpoch(meta.get('epoch')),
    revision: totals.revision,
    auditLength: totals.auditEntries,
    auditHead: (await readAuditEnd(client, totals.auditEntries)).auditHead,
    isClosed: rows[0]?.released === true,
    forgottenTimes: decodeTimes('forgotten_times', meta.get('forgotten_times')),
    unstoredTimes: decodeTimes('unstored_times', meta.get('unstored_times')),
  };
}

type Readers = {
  readonly [Table in StreamTable]: () => AsyncIterable<readonly StreamRows[Table][]>;
};

function readers(client: Client, shapes: Shapes, totals: Totals): Readers {
  return {
    subjects: () => subjectsIn(client, shapes, totals.subjects),
    nonces: () => nonceRowsIn(client, totals),
    audit: () => auditEntriesIn(client, totals.auditEntries),
    liveness: () => livenessIn(client),
  };
}

async function* nonceRowsIn(
  client: Client,
  { nonceRows: total }: Totals,
): AsyncIterable<readonly NonceRow[]> {
  const statement =
    'select bucket, revision, digests, answers from mesh_na.nonces order by bucket, revision';
  let count = 0;
  type Row = [bucket: string, revision: string, digests: Buffer, answers: Buffer | null];
  for await (const rows of fetched<Row>(client, 'nonces', statement)) {
    count += rows.length;
    yield rows.map(nonceRow);
  }
  assertTotal('nonces', count, total);
}

function nonceRow([bucket, revision, digests, answers]: [
  string,
  string,
  Buffer,
  Buffer | null,
]): NonceRow {
  const key = [Number(bucket), Number(revision)] as const;
  return {
    bucket: key[0],
    revision: key[1],
    digests: decodeNonces(key, digests).map(({ digest }) => digest),
    answers:
      answers === null
        ? []
        : decodeAnswers(key, answers).map(({ digest, request, answer }) => [
            digest,
            request,
            answer,
          ]),
  };
}
