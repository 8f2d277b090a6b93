/**
 * A database into which a state is moved. Each reading is one transaction, so that anyone who waits to serve from it finds
 * the state whole, and can follow it as if the readings were the flushes of a service.
 */
import { mkdirSync } from 'node:fs';
import type { Client } from 'pg';
import { decodeArrival, encodeArrival } from '../move/arrival.ts';
import { copyDifference, movedMeta } from '../move/difference.ts';
import { type Arrival, MOVED_META, type StateReading, type StateReceiver } from '../move/ports.ts';
import type { RowKey, TableName } from '../rows.ts';
import type { StoredRow } from '../stored-rows.ts';
import { decodeTotals, type Totals, totalsIn } from '../totals.ts';
import { markInUse } from '../usage-mark.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { readMeta } from './contents.ts';
import { readFollowers } from './followers.ts';
import type { Lease } from './lease.ts';
import { acquireMoveLease, type MoverOptions } from './move-lease.ts';
import { assertSchema } from './schema.ts';
import { pairOf, postgresqlRows, postgresqlWriter } from './stored-rows.ts';

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
  { dataDir }: ReceiverOptions,
  client: Client,
  lease: Lease,
  found: Arrival | null,
): StateReceiver {
  const rows = { ...postgresqlRows(client), ...postgresqlWriter(client) };
  let arrival = found;
  /** The totals of the last reading; null before the first. */
  let taken: Totals | null = null;
  /** The revision of the first. */
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

  async function putMeta(meta: Iterable<readonly [string, Buffer]>): Promise<void> {
    await rows.put(
      'meta',
      Array.from(meta, ([key, row]) => ({ key, version: 0, row })),
    );
  }

  async function empty(): Promise<void> {
    await client.query(
      'truncate mesh_na.subjects, mesh_na.nonces, mesh_na.audit, mesh_na.liveness, mesh_na.changes',
    );
    await client.query(`delete from mesh_na.meta where key = any($1)`, [
      [...MOVED_META, 'arriving'],
    ]);
    await client.query(`insert into mesh_na.meta (key, value) values ('totals', '')`);
  }

  async function takeIn(reading: StateReading): Promise<number> {
    const totals = totalsIn(reading.meta);
    const noted = taken === null ? null : createNotes();
    const changed = await copyDifference(reading, {
      ...rows,
      auditEntries: taken?.auditEntries ?? 0,
      ...noted,
    });
    await putMeta(movedMeta(reading));
    await noted?.write(client, taken?.revision ?? 0, totals.revision);
    return changed;
  }

  async function take(reading: StateReading): Promise<number> {
    const changed = await inTransaction(() => takeIn(reading));
    const totals = totalsIn(reading.meta);
    if (taken === null) copied = totals.revision;
    taken = totals;
    return changed;
  }

  return {
    get arrival() {
      return arrival;
    },
    async begin(begun) {
      await inTransaction(async () => {
        await empty();
        await putMeta([['arriving', encodeArrival(begun)]]);
      });
      arrival = begun;
      taken = null;
      markInUse(dataDir, begun.network);
    },
    take,
    async unready() {
      const followers = await readFollowers(client);
      return followers.filter((follower) => (follower.revision ?? -1) < copied).length;
    },
    async complete({ number, row, totals }) {
      await inTransaction(async () => {
        await rows.put('audit', [{ key: number, version: 0, row }]);
        await createNotes().write(client, taken?.revision ?? 0, decodeTotals(totals).revision);
        await putMeta([['totals', totals]]);
      });
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

/** What a reading has changed, for those who wait to serve from the database, and follow it until then. */
function createNotes() {
  const kinds: string[] = [];
  const ids: Buffer[] = [];
  /** Minutes of the nonces that were spent, by the revision of their flush. */
  const buckets = new Map<number, number[]>();

  return {
    changed(table: TableName, put: readonly StoredRow[], dropped: readonly RowKey[]): void {
      const keys = put.map(({ key }) => key);
      if (table === 'subjects') {
        for (const [kind, id] of [...keys, ...dropped].map((key) => pairOf<string>(key))) {
          kinds.push(kind);
          ids.push(Buffer.from(id));
        }
      } else if (table === 'nonces') {
        for (const [bucket, revision] of keys.map((key) => pairOf<number>(key))) {
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
