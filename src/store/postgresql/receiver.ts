/** Fills a database that has no state, either at once or by a move while the state is served elsewhere. */
import { mkdirSync } from 'node:fs';
import type { Client } from 'pg';
import { type Arrival, metaChange, metaValue } from '../meta-rows.ts';
import { copyDifference, MOVED_META } from '../move/difference.ts';
import { assertArrived, lastChanges } from '../move/marks.ts';
import type { StateReading, StateReceiver, StateTarget } from '../stream/ports.ts';
import { targetOf } from '../stream/target.ts';
import type { TableChange } from '../tables.ts';
import type { Totals } from '../totals.ts';
import { markInUse } from '../usage-mark.ts';
import type { StoreAddress } from './address.ts';
import { commit, inTransaction } from './commit.ts';
import { disconnect } from './connect.ts';
import { acquireMoveLease, type MoverOptions } from './held.ts';
import type { Lease } from './lease.ts';
import { connectToTables } from './schema.ts';
import { readFollowers } from './session-name.ts';
import { postgresqlTables, readMetaOf } from './tables.ts';

/**
 * Writes everything in one transaction, so that the database has either no state or the complete state. `dataDir` is
 * the folder of the network's keys, which is marked as in use. Throws if the database already has state.
 */
export async function openPostgresqlTarget(
  address: StoreAddress,
  dataDir: string,
): Promise<StateTarget> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const { client, shown } = await connectToTables(address);
  try {
    await client.query('begin');
    // Nobody can become the holder of the lease before this transaction has ended.
    await client.query('select epoch from mesh_na.writer_lease for update');
    assertArrived(await arrivalIn(client, shown), `the database at ${shown}`);
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
  return targetOf({
    tables: postgresqlTables(client),
    async finish({ isClosed, network }) {
      const { rows } = await client.query<{ epoch: string }>(
        `update mesh_na.writer_lease set epoch = epoch + 1, holder_name = 'an import',
          expires_at = clock_timestamp(), released = $1 returning epoch`,
        [isClosed],
      );
      try {
        await commit(client);
      } catch (cause) {
        await takeBack(client, rows[0]?.epoch);
        throw cause;
      }
      markInUse(dataDir, network);
      await disconnect(client);
    },
    // The transaction ends with its connection.
    abandon: () => disconnect(client),
  });
}

/**
 * Removes a state that was committed without the standbys, so that the import can be repeated, unless another process
 * has become the holder since. Does not wait for the standbys: one that gets only the first commit has a whole state.
 */
async function takeBack(client: Client, epoch: string | undefined): Promise<void> {
  try {
    await client.query('begin; set local synchronous_commit = local');
    const lease = 'select from mesh_na.writer_lease where epoch = $1 for update';
    if ((await client.query(lease, [epoch])).rowCount === 1) await empty(client);
    await client.query('commit');
  } catch {
    // The connection was lost, or the transaction has not been committed at all.
  }
}

export interface ReceiverOptions extends MoverOptions {
  /** The folder of the network's keys, which is marked as in use. */
  readonly dataDir: string;
}

/**
 * Copies each reading in one transaction, so that a process that waits to serve from the database finds a complete
 * state, and can follow it as if the readings were the flushes of a service. Throws a one-sentence error if the
 * database is in use, or has a state that is not being moved there.
 */
export async function openPostgresqlReceiver(options: ReceiverOptions): Promise<StateReceiver> {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const { client, shown } = await connectToTables(options.address);
  try {
    await arrivalIn(client, shown);
    const lease = await acquireMoveLease(options);
    try {
      // Checked again, because another process may have been the holder in the meantime.
      return receiverOn(options, client, lease, await arrivalIn(client, shown));
    } catch (cause) {
      await lease.end('abandoned');
      throw cause;
    }
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

/** The state being moved into the database; throws a one-sentence error if there is a state that is not being moved. */
async function arrivalIn(client: Client, shown: string): Promise<Arrival | null> {
  const meta = await readMetaOf(client);
  const arrival = metaValue(meta, 'arriving');
  if (arrival === null && (meta.has('network') || metaValue(meta, 'totals').revision > 0)) {
    throw new Error(`The database at ${shown} holds state already`);
  }
  return arrival;
}

function receiverOn(
  { dataDir }: ReceiverOptions,
  client: Client,
  lease: Lease,
  found: Arrival | null,
): StateReceiver {
  const tables = postgresqlTables(client);
  let arrival = found;
  /** The totals of the last reading; null before the first. */
  let taken: Totals | null = null;
  /** The revision of the first reading. */
  let copied = 0;

  function whileHeld<T>(work: () => Promise<T>): Promise<T> {
    return inTransaction(client, async () => {
      await client.query('select mesh_na.hold_lease($1, $2)', [lease.epoch, lease.holder]);
      return work();
    });
  }

  async function takeIn(reading: StateReading): Promise<number> {
    if (taken === null) return copyDifference(reading, tables);
    const notes = createNotes();
    const rows = await copyDifference(reading, tables, notes.add);
    await notes.write(client, taken.revision, metaValue(reading.meta, 'totals').revision);
    return rows;
  }

  async function take(reading: StateReading): Promise<number> {
    const changed = await whileHeld(() => takeIn(reading));
    const totals = metaValue(reading.meta, 'totals');
    if (taken === null) copied = totals.revision;
    taken = totals;
    return changed;
  }

  return {
    get arrival() {
      return arrival;
    },
    async begin(begun) {
      await whileHeld(async () => {
        await empty(client);
        await tables.write([metaChange({ arriving: begun })]);
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
    async complete(last) {
      await whileHeld(async () => {
        await tables.write(lastChanges(last));
        await createNotes().write(client, taken?.revision ?? 0, last.totals.revision);
      });
    },
    async publish(isClosed) {
      await whileHeld(() => client.query(`delete from mesh_na.meta where key = 'arriving'`));
      await lease.end(isClosed ? 'released' : 'abandoned');
      await disconnect(client);
    },
    async leave() {
      // Whether everything was stored is only known at the end of a move.
      await lease.end('abandoned').catch(() => undefined);
      await disconnect(client);
    },
    async abandon() {
      if (arrival !== null) await whileHeld(() => empty(client));
      await lease.end('released');
      await disconnect(client);
    },
  };
}

/** Deletes rows instead of truncating tables, which would have to wait for readers, and readers for it: a deadlock. */
async function empty(client: Client): Promise<void> {
  for (const table of ['subjects', 'nonces', 'audit', 'liveness', 'history', 'changes']) {
    await client.query(`delete from mesh_na.${table}`);
  }
  await client.query(`delete from mesh_na.meta where key = any($1)`, [[...MOVED_META, 'arriving']]);
  await client.query(`insert into mesh_na.meta (key, value) values ('totals', '')`);
}

/** Records what a reading has changed, for processes that follow the database while they wait to serve from it. */
function createNotes() {
  const kinds: string[] = [];
  const ids: Buffer[] = [];
  /** The minutes of spent nonces, by the revision of their flush. */
  const buckets = new Map<number, number[]>();

  return {
    add({ table, put, drop }: Required<TableChange>): void {
      const keys = put.map(({ key }) => key);
      if (table === 'subjects') {
        for (const [kind, id] of [...keys, ...drop] as [string, string][]) {
          kinds.push(kind);
          ids.push(Buffer.from(id));
        }
      } else if (table === 'nonces') {
        for (const [bucket, revision] of keys as [number, number][]) {
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
