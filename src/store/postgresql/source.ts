/** Reads a whole state from PostgreSQL as of one moment, also while a service writes to it. */
import type { Client } from 'pg';
import type { StateReader } from '../move/ports.ts';
import type { MetaRows } from '../stored-rows.ts';
import type { StateSource } from '../stream/ports.ts';
import { sourceOf } from '../stream/source.ts';
import { totalsIn } from '../totals.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { beginReading, readAuditEnd } from './contents.ts';
import { assertSchema, SCHEMA_VERSION } from './schema.ts';
import { postgresqlRows } from './stored-rows.ts';

/** The database has the tables, and nobody has written to them. The message is a sentence. */
export class NoStateYet extends Error {}

/** Throws one clear sentence when there is no state, or when it is damaged. */
export async function openPostgresqlSource(address: StoreAddress): Promise<StateSource> {
  const { client, shown } = await connectToPrimary(address);
  try {
    await assertSchema(client, shown);
    return await sourceAt(client, await beginReading(client), shown);
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

/** Reads one moment after the other. Throws one clear sentence when there is no state. */
export async function openPostgresqlReader(address: StoreAddress): Promise<StateReader> {
  const { client, shown } = await connectToPrimary(address);
  let isReading = false;
  try {
    await assertSchema(client, shown);
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
  return {
    async next() {
      if (isReading) await client.query('commit');
      isReading = true;
      const meta = await beginReading(client);
      const source = await sourceAt(client, meta, shown);
      return { ...postgresqlRows(client), meta, source };
    },
    close: () => disconnect(client),
  };
}

/** The state that the transaction of this connection sees. */
async function sourceAt(client: Client, meta: MetaRows, shown: string): Promise<StateSource> {
  const network = meta.get('network');
  if (network === undefined) throw new NoStateYet(`The database at ${shown} holds no state`);
  const { rows } = await client.query<{ released: boolean }>(
    'select released from mesh_na.writer_lease',
  );
  return sourceOf(network, {
    rows: postgresqlRows(client),
    meta,
    database: { backend: 'postgresql', schemaVersion: SCHEMA_VERSION },
    auditHead: (await readAuditEnd(client, totalsIn(meta).auditEntries)).auditHead,
    isClosed: rows[0]?.released === true,
    close: () => disconnect(client),
  });
}
