/** Reads a snapshot of the state from PostgreSQL, even while a service writes to it. */
import { readEntries } from '../audit-log.ts';
import { metaValue } from '../meta-rows.ts';
import type { AuditEntry } from '../store.ts';
import type { StateSource } from '../stream/ports.ts';
import { readingOf } from '../stream/source.ts';
import type { StoreAddress } from './address.ts';
import { disconnect } from './connect.ts';
import { connectToTables, DATABASE } from './schema.ts';
import { beginReading, postgresqlTables } from './tables.ts';

/** The database has tables but no state yet. The message is a sentence. */
export class NoStateYet extends Error {}

/** Throws a one-sentence error if there is no state or it is damaged. */
export async function openPostgresqlSource(address: StoreAddress): Promise<StateSource> {
  const { client, shown } = await connectToTables(address);
  try {
    const meta = await beginReading(client);
    const network = metaValue(meta, 'network');
    if (network === null) throw new NoStateYet(`The database at ${shown} holds no state`);
    const { rows } = await client.query<{ released: boolean }>(
      'select released from mesh_na.writer_lease',
    );
    const reading = await readingOf({
      network,
      meta,
      tables: postgresqlTables(client),
      database: DATABASE,
      isClosed: rows[0]?.released === true,
    });
    return { ...reading, close: () => disconnect(client) };
  } catch (cause) {
    await disconnect(client);
    throw cause;
  }
}

/** All entries of the audit log in order, from one snapshot; throws if one is missing. */
export async function* readAuditLog(address: StoreAddress): AsyncGenerator<AuditEntry, void> {
  const { client } = await connectToTables(address);
  try {
    const { auditEntries } = metaValue(await beginReading(client), 'totals');
    for await (const entries of readEntries(postgresqlTables(client), auditEntries)) yield* entries;
  } finally {
    await disconnect(client);
  }
}
