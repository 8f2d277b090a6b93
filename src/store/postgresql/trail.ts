/** Follows the state in a database beside the service that writes it, by what each of its flushes says it has changed. */
import type { Client } from 'pg';
import { trailMeta } from '../trail/meta.ts';
import type { RowChange, StateTrail, TrailReading, TrailTable } from '../trail/ports.ts';
import { addressOf } from '../units.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { beginReading, fetched, type MetaRows, totalsIn } from './contents.ts';
import {
  type ChangedSubject,
  changedSubjects,
  FLUSHES,
  type Flush,
  flushesAfter,
  HOLDER,
  NONCES,
  SUBJECTS,
} from './flushes.ts';
import { assertSchema } from './schema.ts';
import { sourceAt } from './source.ts';

/** What is known once a reading has ended. */
interface Position {
  readonly revision: number;
  readonly holder: string | null;
  readonly auditLength: number;
  /** The newest flush of liveness that was read. */
  livenessFlush: number;
  /** How many rows of nonces there are. */
  readonly nonceRows: number;
  /** Their keys. */
  readonly nonces: NonceKey[];
}

type NonceKey = readonly [bucket: number, revision: number];
type Changes = AsyncGenerator<readonly RowChange[], void>;
type Readers = { readonly [Table in TrailTable]: () => Changes };

/** Changed subjects that one round trip asks for. */
const ASKED_AT_ONCE = 2000;

/** Throws one clear sentence when there is no state. */
export async function openPostgresqlTrail(address: StoreAddress): Promise<StateTrail> {
  const { client, shown } = await connectToPrimary(address);
  let position: Position | null = null;
  let isReading = false;

  async function next(): Promise<TrailReading> {
    if (isReading) await client.query('commit');
    isReading = true;
    const meta = await beginReading(client);
    const from = position;
    const flushes = from === null ? [] : await flushesSince(client, meta, from);
    if (flushes === null) {
      throw new Error(
        `The database at ${shown} does not say what was changed in it since revision ${from?.revision}; begin the move again`,
      );
    }
    const reached = await positionAt(client, meta, from, flushes);
    position = reached;
    const read =
      from === null ? allRows(client, reached) : changedRows(client, from, reached, flushes);
    return {
      meta: trailMeta((key) => meta.get(key)),
      isWhole: from === null,
      changes: (table) => read[table](),
      source: await sourceAt(client, meta, shown),
    };
  }

  try {
    await assertSchema(client, shown);
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
  return { next, close: () => disconnect(client) };
}

async function flushesSince(
  client: Client,
  meta: MetaRows,
  from: Position,
): Promise<readonly Flush[] | null> {
  const { rows } = await client.query<Flush>(FLUSHES, [from.revision]);
  return flushesAfter(from, totalsIn(meta).revision, rows);
}

async function positionAt(
  client: Client,
  meta: MetaRows,
  from: Position | null,
  flushes: readonly Flush[],
): Promise<Position> {
  const { revision, auditEntries: auditLength, nonceRows } = totalsIn(meta);
  const { rows } = await client.query<{ holder: string | null }>(HOLDER, [revision]);
  const holder = flushes.at(-1)?.holder ?? from?.holder ?? rows[0]?.holder ?? null;
  return {
    revision,
    holder,
    auditLength,
    nonceRows,
    livenessFlush: from?.livenessFlush ?? 0,
    nonces: [...(from?.nonces ?? [])],
  };
}

function allRows(client: Client, reached: Position): Readers {
  return {
    subjects: () => subjectRows(client),
    nonces: () => nonceRows(client, reached),
    answers: () => answerRows(client),
    audit: () => auditRows(client, 0),
    liveness: () => livenessRows(client, null, reached),
  };
}

async function* subjectRows(client: Client): Changes {
  const statement = 'select kind, id, version, snapshot from mesh_na.subjects order by kind, id';
  type Row = [kind: string, id: Buffer, version: string, row: Buffer];
  for await (const rows of fetched<Row>(client, 'subjects', statement)) {
    yield rows.map(([kind, id, version, row]) => subject(kind, id, version, row));
  }
}

function subject(kind: string, id: Buffer, version: string, row: Buffer): RowChange {
  return { key: [kind, id.toString()], version: Number(version), row };
}

async function* nonceRows(client: Client, reached: Position): Changes {
  const statement = 'select bucket, revision, digests from mesh_na.nonces';
  type Row = [bucket: string, revision: string, row: Buffer];
  for await (const rows of fetched<Row>(client, 'nonces', statement)) {
    const changes = rows.map(([bucket, revision, row]) => keyed(bucket, revision, row));
    for (const { key } of changes) reached.nonces.push(key);
    yield changes;
  }
}

function keyed(bucket: string, revision: string, row: Buffer) {
  const key: NonceKey = [Number(bucket), Number(revision)];
  return { key, version: 0, row };
}

async function* answerRows(client: Client): Changes {
  const statement = `select bucket, revision, answers from mesh_na.nonces where answers is not null`;
  type Row = [bucket: string, revision: string, row: Buffer];
  for await (const rows of fetched<Row>(client, 'answers', statement)) {
    yield rows.map(([bucket, revision, row]) => keyed(bucket, revision, row));
  }
}

async function* auditRows(client: Client, after: number): Changes {
  const statement = `select last_entry, entries from mesh_na.audit where last_entry > ${after}
    order by last_entry`;
  for await (const rows of fetched<[last: string, row: Buffer]>(client, 'audit', statement)) {
    yield rows.map(([last, row]) => ({ key: Number(last), version: 0, row }));
  }
}

/** Flushes are numbered in the order in which they are committed, so the newest that is seen is the last. */
async function* livenessRows(client: Client, after: number | null, reached: Position): Changes {
  // There is no index by flush, which every heartbeat would have to change.
  await client.query('set local enable_seqscan = on');
  const which = after === null ? '' : `where flush > ${after}`;
  const statement = `select id, contact, flush from mesh_na.liveness ${which}`;
  type Row = [id: Buffer, row: Buffer, flush: string];
  for await (const rows of fetched<Row>(client, 'liveness', statement)) {
    for (const [, , flush] of rows) {
      reached.livenessFlush = Math.max(reached.livenessFlush, Number(flush));
    }
    yield rows.map(([id, row]) => ({ key: id.toString(), version: 0, row }));
  }
}

function changedRows(
  client: Client,
  from: Position,
  reached: Position,
  flushes: readonly Flush[],
): Readers {
  const changed = changedSubjects(flushes);
  const nonceKeys = flushes.flatMap(({ revision, buckets }) =>
    buckets.map((bucket) => [bucket, revision] as const),
  );

  async function* nonces(): Changes {
    for await (const rows of askedNonces(client, nonceKeys)) {
      const changes = rows.map(({ bucket, revision, digests }) => keyed(bucket, revision, digests));
      for (const { key } of changes) reached.nonces.push(key);
      yield changes;
    }
    yield await forgotten(client, reached);
  }

  async function* answers(): Changes {
    for await (const rows of askedNonces(client, nonceKeys)) {
      yield rows.flatMap(({ bucket, revision, answers: row }) =>
        row === null ? [] : keyed(bucket, revision, row),
      );
    }
  }

  async function* liveness(): Changes {
    for (const ids of inParts([...changed.values()].map(({ id }) => id))) {
      const { rows } = await client.query<{ id: Buffer }>(UNLISTED, [ids]);
      yield rows.map(({ id }) => ({ key: id.toString(), version: 0, row: null }));
    }
    yield* livenessRows(client, from.livenessFlush, reached);
  }

  return {
    subjects: () => askedSubjects(client, changed),
    nonces,
    answers,
    audit: () => auditRows(client, from.auditLength),
    liveness,
  };
}

async function* askedSubjects(
  client: Client,
  changed: ReadonlyMap<string, ChangedSubject>,
): Changes {
  for (const asked of inParts([...changed.values()])) {
    type Row = { kind: string; id: Buffer; version: string; snapshot: Buffer };
    const { rows } = await client.query<Row>(SUBJECTS, [
      asked.map(({ kind }) => kind),
      asked.map(({ id }) => id),
    ]);
    const present = rows.map(({ kind, id, version, snapshot }) =>
      subject(kind, id, version, snapshot),
    );
    const found = new Set(rows.map(({ kind, id }) => addressOf({ kind, id: id.toString() })));
    const gone = asked
      .map(({ kind, id }) => ({ kind, id: id.toString() }))
      .filter((one) => !found.has(addressOf(one)));
    yield [
      ...present,
      ...gone.map(({ kind, id }) => ({ key: [kind, id] as const, version: 0, row: null })),
    ];
  }
}

interface NonceRow {
  readonly bucket: string;
  readonly revision: string;
  readonly digests: Buffer;
  readonly answers: Buffer | null;
}

async function* askedNonces(
  client: Client,
  keys: readonly (readonly [bucket: string, revision: string])[],
): AsyncGenerator<readonly NonceRow[], void> {
  for (const asked of inParts(keys)) {
    const { rows } = await client.query<NonceRow>(NONCES, [
      asked.map(([bucket]) => bucket),
      asked.map(([, revision]) => revision),
    ]);
    yield rows;
  }
}

/** Takes those that are not stored any more out of the ones that are known. */
async function forgotten(
  client: Client,
  { nonces, nonceRows }: Position,
): Promise<readonly RowChange[]> {
  if (nonces.length === nonceRows) return [];
  const { rows } = await client.query<[string, string]>({
    text: 'select bucket, revision from mesh_na.nonces',
    rowMode: 'array',
  });
  const present = new Set(rows.map(([bucket, revision]) => `${bucket} ${revision}`));
  const isPresent = ([bucket, revision]: NonceKey) => present.has(`${bucket} ${revision}`);
  const gone = nonces.filter((key) => !isPresent(key));
  nonces.splice(0, nonces.length, ...nonces.filter(isPresent));
  return gone.map((key) => ({ key, version: 0, row: null }));
}

function* inParts<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += ASKED_AT_ONCE)
    yield items.slice(at, at + ASKED_AT_ONCE);
}

/** A service removes the contact with a subject, also of one that is then created again. */
const UNLISTED = `select w.id from unnest($1::bytea[]) as w (id)
  where not exists (select 1 from mesh_na.liveness as l where l.id = w.id)`;
