/** The audit log of a database, read while the service writes it. */
import { auditEntriesIn } from '../contents.ts';
import type { AuditEntry } from '../store.ts';
import { totalsIn } from '../totals.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { beginReading } from './contents.ts';
import { assertSchema } from './schema.ts';
import { postgresqlRows } from './stored-rows.ts';

/** Every entry in order, as of one moment; throws when one is missing. */
export async function* readAuditLog(address: StoreAddress): AsyncGenerator<AuditEntry, void> {
  const { client, shown } = await connectToPrimary(address);
  try {
    await assertSchema(client, shown);
    const { auditEntries } = totalsIn(await beginReading(client));
    for await (const entries of auditEntriesIn(postgresqlRows(client), auditEntries)) {
      yield* entries;
    }
  } finally {
    await disconnect(client);
  }
}
