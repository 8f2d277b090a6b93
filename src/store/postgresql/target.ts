/** Writes a whole state to a database without one, in one transaction: there is no state or all of it. */
import { mkdirSync } from 'node:fs';
import { assertArrived, decodeArrival } from '../move/arrival.ts';
import type { StateTarget } from '../stream/ports.ts';
import { targetOf } from '../stream/target.ts';
import { totalsIn } from '../totals.ts';
import { markInUse } from '../usage-mark.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { readMeta } from './contents.ts';
import { assertSchema } from './schema.ts';
import { postgresqlWriter } from './stored-rows.ts';

/** `dataDir` is the folder of the network's keys, which is marked as in use. Throws when there is state. */
export async function openPostgresqlTarget(
  address: StoreAddress,
  dataDir: string,
): Promise<StateTarget> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const { client, shown } = await connectToPrimary(address);
  try {
    await assertSchema(client, shown);
    await client.query('begin');
    // Nobody can become the holder of the lease before this transaction has ended.
    await client.query('select epoch from mesh_na.writer_lease for update');
    const meta = await readMeta(client);
    assertArrived(decodeArrival(meta.get('arriving')), `the database at ${shown}`);
    if (meta.has('network') || totalsIn(meta).revision > 0) {
      throw new Error(`The database at ${shown} holds state already`);
    }
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
  const { put } = postgresqlWriter(client);
  return targetOf({
    put,
    async finish(meta, { isClosed, network }) {
      const rows = Array.from(meta, ([key, row]) => ({ key, version: 0, row }));
      await put('meta', rows);
      await client.query(
        `update mesh_na.writer_lease set epoch = epoch + 1, holder_name = 'an import',
          expires_at = clock_timestamp(), released = $1`,
        [isClosed],
      );
      await client.query('commit');
      markInUse(dataDir, network);
      await disconnect(client);
    },
    // The transaction ends with its connection.
    abandon: () => disconnect(client),
  });
}
