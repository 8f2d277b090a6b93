/**
 * Fills a database that has no state, by a restore or a move. Holds a database whose state is moved elsewhere: the process
 * that moves it becomes its last holder.
 */
import { mkdirSync } from 'node:fs';
import type { Client } from 'pg';
import { metaChange, metaValue } from '../meta-rows.ts';
import { assertArrived, copyRows, lastChanges, MOVED_META, retirement } from '../move/marks.ts';
import type { HeldState, StateReceiver, StateTarget } from '../stream/ports.ts';
import { targetOf } from '../stream/target.ts';
import { markInUse } from '../usage-mark.ts';
import type { StoreAddress } from './address.ts';
import type { LeaseClock } from './clocks.ts';
import { awaitStandbys, commit, inTransaction } from './commit.ts';
import { disconnect, onPrimary } from './connect.ts';
import { acquireLease, type Lease, type LeaseHolder, NotWaiting } from './lease.ts';
import { connectToLease, type LeaseTableOptions } from './lease-table.ts';
import { assertSchema, connectToTables } from './schema.ts';
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

interface ReceiverOptions extends MoverOptions {
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

/** A process that moves a state out of a database, or into it. */
interface MoverOptions extends LeaseTableOptions {
  readonly address: StoreAddress;
  readonly holder: LeaseHolder;
  readonly clock: LeaseClock;
}

/** Acquires the right to write to the database. Throws a one-sentence error while another process has it. */
function acquireMoveLease(options: MoverOptions): Promise<Lease> {
  return acquireLease({
    ...options,
    standby: null,
    ttl: options.leaseMs,
    connect: () => connectToLease(options.address, options),
    confirmed: () => undefined,
    // Every transaction of a move checks the lease, and fails without it.
    lost: () => undefined,
  });
}

/** Whether the database has a state that is not still being moved into it. */
export function isServable(address: StoreAddress): Promise<boolean> {
  return onPrimary(address, async (client, shown) => {
    await assertSchema(client, shown);
    const meta = await readMetaOf(client);
    const found = meta.has('network') && !meta.has('arriving');
    // The state must outlive the primary, because a repeated move relies on it.
    if (found) await awaitStandbys(client);
    return found;
  });
}

/** Throws a one-sentence error if another process holds the database. */
export async function holdDatabase(options: MoverOptions): Promise<HeldState> {
  const { client, shown } = await connectToTables(options.address);
  try {
    // A standby that is away is named here: the lease would only wait for it.
    await movedIn(client);
    const lease = await acquireMoveLease(options).catch((cause) => {
      if (!(cause instanceof NotWaiting)) throw cause;
      throw new Error(
        `The state in the database at ${shown} is in use by ${cause.holderName}: stop it, and every other instance, first`,
      );
    });
    try {
      return heldOn(client, lease, await movedIn(client));
    } catch (cause) {
      await endLease(lease);
      throw cause;
    }
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

/** The place to which the state was moved; null if it was not. What is found outlives the primary. */
async function movedIn(client: Client): Promise<string | null> {
  const movedTo = metaValue(await readMetaOf(client), 'moved');
  if (movedTo !== null) await awaitStandbys(client);
  return movedTo;
}

/** Leaves the lease as the process that served the state has left it. */
async function endLease(lease: Lease): Promise<void> {
  await lease.end(lease.previousOwner === 'lost' ? 'abandoned' : 'released').catch(() => undefined);
}

function heldOn(client: Client, lease: Lease, movedTo: string | null): HeldState {
  let isHeld = true;
  return {
    wasClosed: lease.previousOwner !== 'lost',
    movedTo,
    async retire(last, successor) {
      await inTransaction(client, async () => {
        await client.query('select mesh_na.hold_lease($1, $2)', [lease.term, lease.holder]);
        await postgresqlTables(client).write(retirement(last, successor));
      });
    },
    async release() {
      if (!isHeld) return;
      isHeld = false;
      await endLease(lease);
      await disconnect(client);
    },
  };
}
