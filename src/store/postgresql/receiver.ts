/**
 * A database into which a state is moved. Each reading is one transaction, so that whoever waits to serve from it finds
 * the state whole, and can follow it as if the readings were the flushes of a service.
 */
import { mkdirSync } from 'node:fs';
import type { Client } from 'pg';
import { DamagedState, type RowKey } from '../rows.ts';
import { assertTotal, decodeTotals, type Totals } from '../totals.ts';
import { decodeArrival, encodeArrival } from '../trail/arrival.ts';
import type {
  Arrival,
  RowChange,
  StateReceiver,
  TrailReading,
  TrailTable,
} from '../trail/ports.ts';
import { TRAIL_META, TRAIL_TABLES } from '../trail/ports.ts';
import { markInUse } from '../usage-mark.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { readMeta, totalsIn } from './contents.ts';
import { readFollowers } from './followers.ts';
import type { Lease } from './lease.ts';
import { acquireMoveLease, type MoverOptions } from './move-lease.ts';
import { assertSchema } from './schema.ts';
import { openPostgresqlSource } from './source.ts';

export interface ReceiverOptions extends MoverOptions {
  /** The folder of the network's keys, which is marked as in use. */
  readonly dataDir: string;
}

/** Throws one clear sentence when the database has a state that was not moved there, or is in use. */
export async function openPostgresqlReceiver(options: ReceiverOptions): Promise<StateReceiver> {
  const { address, dataDir } = options;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const { client, shown } = await connectToPrimary(address);
  try {
    await assertSchema(client, shown);
    const found = decodeArrival((await readMeta(client)).get('arriving'));
    if (found === null) await assertNoState(client, shown);
    const lease = await acquireMoveLease(options);
    try {
      const arrival = decodeArrival((await readMeta(client)).get('arriving'));
      // Another may have been the holder before.
      if (arrival === null) await assertNoState(client, shown);
      return receiverOn(options, client, lease, arrival);
    } catch (cause) {
      await lease.end('released');
      throw cause;
    }
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

async function assertNoState(client: Client, shown: string): Promise<void> {
  const meta = await readMeta(client);
  if (!meta.has('network') && totalsIn(meta).revision === 0) return;
  throw new Error(`The database at ${shown} holds state already`);
}

function receiverOn(
  { address, dataDir }: ReceiverOptions,
  client: Client,
  lease: Lease,
  found: Arrival | null,
): StateReceiver {
  let arrival = found;
  /** Of the last reading, and of the first. */
  let revision = 0;
  let copied = 0;

  async function inTransaction<T>(work: () => Promise<T>): Promise<T> {
    await client.query('begin');
    try {
      await client.query('select mesh_na.hold_lease($1)', [lease.epoch]);
      const done = await work();
      await client.query('commit');
      return done;
    } catch (cause) {
      await client.query('rollback').catch(() => undefined);
      throw cause;
    }
  }

  async function putMeta(key: string, row: Buffer): Promise<void> {
    await client.query('select mesh_na.put_meta($1, $2)', [key, row]);
  }

  async function empty(): Promise<void> {
    await client.query(
      'truncate mesh_na.subjects, mesh_na.nonces, mesh_na.audit, mesh_na.liveness, mesh_na.changes',
    );
    await client.query(`delete from mesh_na.meta where key = any($1)`, [
      [...TRAIL_META, 'arriving'],
    ]);
    await client.query(`insert into mesh_na.meta (key, value) values ('totals', '')`);
  }

  async function takeIn(reading: TrailReading): Promise<number> {
    const totals = decodeTotals(reading.meta.get('totals'));
    const noted = reading.isWhole ? null : createNotes();
    let rows = 0;
    for (const table of TRAIL_TABLES) {
      for await (const changes of reading.changes(table)) {
        rows += changes.length;
        await APPLY[table](client, changes);
        noted?.note(table, changes);
      }
    }
    for (const [key, row] of reading.meta) await putMeta(key, row);
    if (noted !== null) await noted.write(client, revision, totals.revision);
    revision = totals.revision;
    if (reading.isWhole) copied = revision;
    return rows;
  }

  return {
    get arrival() {
      return arrival;
    },
    async begin({ from, network }) {
      const begun = { from, network, isComplete: false };
      await inTransaction(async () => {
        await empty();
        await putMeta('arriving', encodeArrival(begun));
      });
      arrival = begun;
      revision = 0;
      markInUse(dataDir, network);
    },
    take: (reading) => inTransaction(() => takeIn(reading)),
    async unready() {
      const followers = await readFollowers(client);
      return followers.filter((follower) => (follower.revision ?? -1) < copied).length;
    },
    openSource: () => openPostgresqlSource(address),
    async complete({ number, row, totals }) {
      if (arrival === null) throw new Error('Nothing is being moved here');
      const completed = { ...arrival, isComplete: true };
      const next = decodeTotals(totals).revision;
      await inTransaction(async () => {
        await assertCounts(client, decodeTotals(totals));
        await APPLY.audit(client, [{ key: number, version: 0, row }]);
        await createNotes().write(client, revision, next);
        await putMeta('totals', totals);
        await putMeta('arriving', encodeArrival(completed));
      });
      arrival = completed;
    },
    async publish(isClosed) {
      await inTransaction(() => client.query(`delete from mesh_na.meta where key = 'arriving'`));
      await lease.end(isClosed ? 'released' : 'abandoned');
      await disconnect(client);
    },
    async leave() {
      await lease.end('released').catch(() => undefined);
      await disconnect(client);
    },
    async abandon() {
      if (arrival !== null) await inTransaction(empty);
      await lease.end('released');
      await disconnect(client);
    },
  };
}

type Apply = (client: Client, changes: readonly RowChange[]) => Promise<void>;

const APPLY: Readonly<Record<TrailTable, Apply>> = {
  async subjects(client, changes) {
    const [present, gone] = parted(changes);
    await run(client, PUT_SUBJECTS, present, [
      present.map(({ key }) => pairOf<string>(key)[0]),
      present.map(({ key }) => Buffer.from(pairOf<string>(key)[1])),
      present.map(({ version }) => version),
      present.map(({ row }) => row),
    ]);
    await run(client, DROP_SUBJECTS, gone, [
      gone.map(({ key }) => pairOf<string>(key)[0]),
      gone.map(({ key }) => Buffer.from(pairOf<string>(key)[1])),
    ]);
  },
  async nonces(client, changes) {
    const [present, gone] = parted(changes);
    await run(client, PUT_NONCES, present, [...nonceColumns(present), rowsOf(present)]);
    await run(client, DROP_NONCES, gone, nonceColumns(gone));
  },
  async answers(client, changes) {
    // They go with the nonces of the same key.
    const [present] = parted(changes);
    await run(client, PUT_ANSWERS, present, [...nonceColumns(present), rowsOf(present)]);
  },
  async audit(client, changes) {
    const [present, gone] = parted(changes);
    if (gone.length > 0) throw new DamagedState('a part of the audit log was removed');
    await run(client, PUT_AUDIT, present, [present.map(({ key }) => key), rowsOf(present)]);
  },
  async liveness(client, changes) {
    const [present, gone] = parted(changes);
    await run(client, PUT_LIVENESS, present, [idsOf(present), rowsOf(present)]);
    await run(client, DROP_LIVENESS, gone, [idsOf(gone)]);
  },
};

const PUT_SUBJECTS = `
  insert into mesh_na.subjects (kind, id, version, revision, snapshot)
    select w.kind, w.id, w.version, 0, w.snapshot
    from unnest($1::text[], $2::bytea[], $3::bigint[], $4::bytea[]) as w (kind, id, version, snapshot)
  on conflict (kind, id) do update set version = excluded.version, snapshot = excluded.snapshot`;
const DROP_SUBJECTS = `
  delete from mesh_na.subjects as s using unnest($1::text[], $2::bytea[]) as w (kind, id)
  where s.kind = w.kind and s.id = w.id`;
const PUT_NONCES = `
  insert into mesh_na.nonces (bucket, revision, digests)
    select * from unnest($1::bigint[], $2::bigint[], $3::bytea[])
  on conflict (bucket, revision) do update set digests = excluded.digests`;
const DROP_NONCES = `
  delete from mesh_na.nonces as n using unnest($1::bigint[], $2::bigint[]) as w (bucket, revision)
  where n.bucket = w.bucket and n.revision = w.revision`;
const PUT_ANSWERS = `
  update mesh_na.nonces as n set answers = w.answers
  from unnest($1::bigint[], $2::bigint[], $3::bytea[]) as w (bucket, revision, answers)
  where n.bucket = w.bucket and n.revision = w.revision`;
const PUT_AUDIT = `
  insert into mesh_na.audit (last_entry, entries) select * from unnest($1::bigint[], $2::bytea[])
  on conflict (last_entry) do update set entries = excluded.entries`;
/** One flush has one number, as that of a service. */
const PUT_LIVENESS = `
  insert into mesh_na.liveness (id, contact, flush)
    select w.id, w.contact, f.number
    from unnest($1::bytea[], $2::bytea[]) as w (id, contact),
      (select nextval('mesh_na.liveness_flushes') as number) as f
  on conflict (id) do update set contact = excluded.contact, flush = excluded.flush`;
const DROP_LIVENESS = `
  delete from mesh_na.liveness as l using unnest($1::bytea[]) as w (id) where l.id = w.id`;

async function run(
  client: Client,
  text: string,
  changes: readonly RowChange[],
  columns: readonly (readonly unknown[])[],
): Promise<void> {
  if (changes.length > 0) await client.query(text, [...columns]);
}

function parted(changes: readonly RowChange[]) {
  return [
    changes.filter(({ row }) => row !== null),
    changes.filter(({ row }) => row === null),
  ] as const;
}

function pairOf<Part extends string | number>(key: RowKey): readonly [Part, Part] {
  if (typeof key === 'object') return key as unknown as readonly [Part, Part];
  throw new DamagedState('a key has another form than those of its table');
}

function nonceColumns(changes: readonly RowChange[]): readonly (readonly number[])[] {
  const keys = changes.map(({ key }) => pairOf<number>(key));
  return [keys.map(([bucket]) => bucket), keys.map(([, revision]) => revision)];
}

function idsOf(changes: readonly RowChange[]): readonly Buffer[] {
  return changes.map(({ key }) => Buffer.from(String(key)));
}

function rowsOf(changes: readonly RowChange[]) {
  return changes.map(({ row }) => row);
}

/** A row too many, or too few, would be found only by whoever serves from the database. */
async function assertCounts(client: Client, totals: Totals): Promise<void> {
  await client.query('set local enable_seqscan = on');
  const { rows } = await client.query<{ subjects: string; nonces: string }>(COUNTS);
  assertTotal('subjects', Number(rows[0]?.subjects), totals.subjects);
  assertTotal('nonces', Number(rows[0]?.nonces), totals.nonceRows);
}

const COUNTS = `select (select count(*) from mesh_na.subjects) as subjects,
  (select count(*) from mesh_na.nonces) as nonces`;

/** What a reading has changed, for those who wait to serve from the database, and follow it until then. */
function createNotes() {
  const kinds: string[] = [];
  const ids: Buffer[] = [];
  /** Minutes of the nonces that were spent, by the revision of their flush. */
  const buckets = new Map<number, number[]>();

  return {
    note(table: TrailTable, changes: readonly RowChange[]): void {
      for (const { key, row } of changes) {
        if (table === 'subjects') {
          const [kind, id] = pairOf<string>(key);
          kinds.push(kind);
          ids.push(Buffer.from(id));
        } else if (table === 'nonces' && row !== null) {
          const [bucket, revision] = pairOf<number>(key);
          buckets.set(revision, [...(buckets.get(revision) ?? []), bucket]);
        }
      }
    },
    async write(client: Client, before: number, last: number): Promise<void> {
      let follows = before;
      const spent = [...buckets].filter(([revision]) => revision > before && revision < last);
      for (const [revision, minutes] of spent.toSorted(([a], [b]) => a - b)) {
        await client.query(NOTE, [revision, follows, [], [], minutes]);
        follows = revision;
      }
      if (last > before)
        await client.query(NOTE, [last, follows, kinds, ids, buckets.get(last) ?? []]);
    },
  };
}

const NOTE = 'select mesh_na.note_changes($1, $2, $3, $4, $5)';
