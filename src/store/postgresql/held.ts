/** A database whose state is moved elsewhere: anyone who moves it becomes its last holder. */
import type { Client } from 'pg';
import type { HeldState, LastEntry } from '../move/ports.ts';
import { decodeMoved, encodeMoved } from '../moved.ts';
import type { MetaRows } from '../stored-rows.ts';
import { decodeTotals, totalsIn } from '../totals.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { readMeta } from './contents.ts';
import type { Lease } from './lease.ts';
import { connectToLease } from './lease-table.ts';
import { acquireMoveLease, type MoverOptions } from './move-lease.ts';
import { assertSchema } from './schema.ts';

/** Anyone who asks does so again before. */
const ASK_MS = 5000;

/** The place to which the state in the database was moved; null when it was not. */
export async function movedFromDatabase(address: StoreAddress): Promise<string | null> {
  return decodeMoved((await metaOf(address)).get('moved'));
}

/** Whether there is a state that is not on its way. */
export async function isServable(address: StoreAddress): Promise<boolean> {
  const meta = await metaOf(address);
  return meta.has('network') && !meta.has('arriving');
}

async function metaOf(address: StoreAddress): Promise<MetaRows> {
  const { client, shown } = await connectToPrimary(address);
  try {
    await assertSchema(client, shown);
    return await readMeta(client);
  } finally {
    await disconnect(client);
  }
}

/** Asks the instance that writes to stop, and those that wait for their turn to go on waiting, for a few seconds. */
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

/** Null while another process has the database. */
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
      await client.query('begin');
      await client.query('select mesh_na.hold_lease($1, $2)', [lease.epoch, lease.holder]);
      await writeLast(client, last, successor);
      await client.query('commit');
      await release();
    },
    release,
  };
}

async function writeLast(client: Client, last: LastEntry, successor: string): Promise<void> {
  const { revision } = totalsIn(await readMeta(client));
  const next = decodeTotals(last.totals).revision;
  await client.query('insert into mesh_na.audit values ($1, $2)', [last.number, last.row]);
  await client.query('select mesh_na.note_changes($1, $2, $3, $4, $5)', [
    next,
    revision,
    [],
    [],
    [],
  ]);
  await client.query(`select mesh_na.put_meta('totals', $1)`, [last.totals]);
  await client.query(`select mesh_na.put_meta('moved', $1)`, [encodeMoved(successor)]);
}
