/** The audit log of a database, read beside the service that writes it. */
import type { AuditEntry } from '../store.ts';
import type { StoreAddress } from './address.ts';
import { connectToPrimary, disconnect } from './connect.ts';
import { readAuditEntries } from './contents.ts';
import { assertSchema } from './schema.ts';

/** Every entry in order, in batches, as of one moment. */
export async function* readAuditLog(
  address: StoreAddress,
): AsyncGenerator<readonly AuditEntry[], void> {
  const { client, shown } = await connectToPrimary(address);
  try {
    await assertSchema(client, shown);
    yield* readAuditEntries(client);
  } finally {
    await disconnect(client);
  }
}
