/** Holds a database whose state is moved elsewhere: the process that moves it becomes its last holder. */
import type { Client } from 'pg';
import { type MetaRows, metaValue } from '../meta-rows.ts';
import { retirement } from '../move/marks.ts';
import type { HeldState } from '../stream/ports.ts';
import type { StoreAddress } from './address.ts';
import { awaitStandbys, inTransaction } from './commit.ts';
import { connectToPrimary, disconnect, onPrimary } from './connect.ts';
import { acquireLease, type Lease, type LeaseHolder } from './lease.ts';
import type { LeaseClock } from './lease-clock.ts';
import { connectToLease, type LeaseTableOptions } from './lease-table.ts';
import { assertSchema } from './schema.ts';
import { postgresqlTables, readMetaOf } from './tables.ts';

/** A process that moves a state out of a database, or into it. */
export interface MoverOptions extends LeaseTableOptions {
  readonly address: StoreAddress;
  readonly holder: LeaseHolder;
  readonly clock: LeaseClock;
}

/** Acquires the right to write to the database. Throws a one-sentence error while another process has it. */
export function acquireMoveLease(options: MoverOptions): Promise<Lease> {
  return acquireLease({
    ...options,
    candidate: null,
    ttl: options.leaseMs,
    connect: () => connectToLease(options.address, options),
    confirmed: () => undefined,
    stopRequested: () => undefined,
    // Every transaction of a move checks the lease, and fails without it.
    lost: () => undefined,
  });
}

/** How long a request to stop is valid; it is repeated before it expires. */
const ASK_MS = 5000;

/** The place to which the state in the database was moved; null if it was not moved. */
export function movedFromDatabase(address: StoreAddress): Promise<string | null> {
  return onMeta(address, (meta) => metaValue(meta, 'moved'));
}

/** Whether the database has a state that is not still being moved into it. */
export function isServable(address: StoreAddress): Promise<boolean> {
  return onMeta(address, (meta) => meta.has('network') && !meta.has('arriving'));
}

/** What is found must outlive the primary, because a repeated move relies on it. */
function onMeta<Found>(address: StoreAddress, find: (meta: MetaRows) => Found): Promise<Found> {
  return onPrimary(address, async (client, shown) => {
    await assertSchema(client, shown);
    const found = find(await readMetaOf(client));
    if (found) await awaitStandbys(client);
    return found;
  });
}

/**
 * Asks the writer to stop, and waiting instances to continue to wait, for a few seconds. Returns the writer's name;
 * null if there is no writer.
 */
export async function askWriter(options: MoverOptions): Promise<string | null> {
  const table = await connectToLease(options.address, options);
  try {
    const { isOver, holderName } = await table.look();
    if (!isOver) await table.requestStop(ASK_MS);
    return isOver ? null : holderName;
  } finally {
    await table.disconnect();
  }
}

/** Null while another process holds the database. */
export async function holdDatabase(options: MoverOptions): Promise<HeldState | null> {
  const table = await connectToLease(options.address, options);
  const { isOver } = await table.look().finally(() => table.disconnect());
  if (!isOver) return null;
  const { client } = await connectToPrimary(options.address);
  try {
    return heldOn(client, await acquireMoveLease(options));
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

function heldOn(client: Client, lease: Lease): HeldState {
  const wasClosed = lease.previousOwner !== 'lost';
  let isHeld = true;

  async function release(): Promise<void> {
    if (!isHeld) return;
    isHeld = false;
    await lease.end(wasClosed ? 'released' : 'abandoned').catch(() => undefined);
    await disconnect(client);
  }

  return {
    wasClosed,
    async retire(last, successor) {
      await inTransaction(client, async () => {
        await client.query('select mesh_na.hold_lease($1, $2)', [lease.epoch, lease.holder]);
        const { revision } = metaValue(await readMetaOf(client), 'totals');
        await client.query('select mesh_na.note_changes($1, $2, $3, $4, $5)', [
          last.totals.revision,
          revision,
          [],
          [],
          [],
        ]);
        await postgresqlTables(client).write(retirement(last, successor));
      });
      await release();
    },
    release,
  };
}
