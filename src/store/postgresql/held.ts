/** Holds a database whose state is moved elsewhere: the process that moves it becomes its last holder. */
import type { Client } from 'pg';
import { metaValue } from '../meta-rows.ts';
import { retirement } from '../move/marks.ts';
import type { HeldState } from '../stream/ports.ts';
import type { StoreAddress } from './address.ts';
import { awaitStandbys, inTransaction } from './commit.ts';
import { connectToPrimary, disconnect, onPrimary } from './connect.ts';
import { acquireLease, type Lease, type LeaseHolder, NotWaiting } from './lease.ts';
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
  const { client, shown } = await connectToPrimary(options.address);
  try {
    await assertSchema(client, shown);
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
