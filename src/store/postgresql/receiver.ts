/** Fills a database that has no state, by a restore or a move. */
import { mkdirSync } from 'node:fs';
import type { Client } from 'pg';
import { metaChange, metaValue } from '../meta-rows.ts';
import { copyRows, MOVED_META } from '../move/copy.ts';
import { assertArrived, lastChanges } from '../move/marks.ts';
import type { StateReceiver, StateTarget } from '../stream/ports.ts';
import { targetOf } from '../stream/target.ts';
import { markInUse } from '../usage-mark.ts';
import type { StoreAddress } from './address.ts';
import { commit, inTransaction } from './commit.ts';
import { disconnect } from './connect.ts';
import { acquireMoveLease, type MoverOptions } from './held.ts';
import type { Lease } from './lease.ts';
import { connectToTables } from './schema.ts';
import { openPostgresqlSource } from './source.ts';
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
    assertArrived(await isArriving(client, shown), `the database at ${shown}`);
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

/** Throws a one-sentence error if the database is in use, or has a state that is not being moved there. */
export async function openPostgresqlReceiver(options: ReceiverOptions): Promise<StateReceiver> {
  mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  const { client, shown } = await connectToTables(options.address);
  try {
    await isArriving(client, shown);
    const lease = await acquireMoveLease(options);
    try {
      // Checked again, because another process may have been the holder in the meantime.
      await isArriving(client, shown);
      return receiverOn(options, client, lease);
    } catch (cause) {
      await lease.end('abandoned');
      throw cause;
    }
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

/**
 * Whether a state is being moved into the database, or that was interrupted. Throws a one-sentence error if there is a
 * state that is not being moved.
 */
async function isArriving(client: Client, shown: string): Promise<boolean> {
  const meta = await readMetaOf(client);
  if (metaValue(meta, 'arriving') !== null) return true;
  if (meta.has('network') || metaValue(meta, 'totals').revision > 0) {
    throw new Error(`The database at ${shown} holds state already`);
  }
  return false;
}

function receiverOn(
  { address, dataDir }: ReceiverOptions,
  client: Client,
  lease: Lease,
): StateReceiver {
  const tables = postgresqlTables(client);

  function whileHeld<T>(work: () => Promise<T>): Promise<T> {
    return inTransaction(client, async () => {
      await client.query('select mesh_na.hold_lease($1, $2)', [lease.term, lease.holder]);
      return work();
    });
  }

  return {
    async take(reading) {
      const { network } = reading.facts;
      // Prevents a new network from being started with these keys, even if the move fails.
      markInUse(dataDir, network);
      await whileHeld(async () => {
        await empty(client);
        await tables.write([metaChange({ arriving: { network } })]);
        await copyRows(reading, tables);
      });
    },
    taken: () => openPostgresqlSource(address),
    complete: (last) => whileHeld(() => tables.write(lastChanges(last))),
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
