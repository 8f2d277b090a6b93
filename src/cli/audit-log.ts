/** The audit log of a data folder, for the commands that read it. */
import type { AuditEntry } from '../store/store.ts';
import { onLocalFiles } from './exit-codes.ts';
import { counted } from './progress.ts';

/** Damaged pages can end the process that reads them through LMDB: they are looked for first. */
export async function openLog(dataDir: string): Promise<AuditLog> {
  const { checkForReading } = await import('../store/lmdb/folder-state.ts');
  const isChecked = onLocalFiles(() => checkForReading(dataDir));
  const { readAuditEntries } = await import('../store/lmdb/audit.ts');
  return { isChecked, entries: counted('Audit entries read:', readAuditEntries(dataDir)) };
}

interface AuditLog {
  /** False while the database is written to all the time. */
  readonly isChecked: boolean;
  readonly entries: Iterable<AuditEntry>;
}
