/** The audit log of a data folder or of a database, for the commands that read it. */
import type { StoreAddress } from '../store/postgresql/address.ts';
import type { AuditEntry } from '../store/store.ts';
import { EXIT, failure, onLocalFiles } from './exit-codes.ts';
import { counted } from './progress.ts';
import { databaseOf, onState, type StatePlace } from './store-address.ts';

export interface AuditLog {
  /** False while the files are written to all the time; null for a database, which looks after its own pages. */
  readonly pagesChecked: boolean | null;
  /** In order, as of one moment. What goes wrong while they are read ends the command with one sentence. */
  readonly entries: AsyncIterable<AuditEntry>;
}

export async function openLog(place: StatePlace): Promise<AuditLog> {
  const address = await onState(() => databaseOf(place));
  const log = address === null ? await logOfFolder(place.dataDir) : await logOfDatabase(address);
  return { ...log, entries: counted('Audit entries read:', log.entries) };
}

/** Printed to stderr, because the output stays empty: usually it is not the log that was meant. */
export function noteEmptyLog(): void {
  process.stderr.write('The audit log is empty.\n');
}

/** Damaged pages can end the process that reads them through LMDB: they are looked for first. */
async function logOfFolder(dataDir: string): Promise<AuditLog> {
  const { checkForReading } = await import('../store/lmdb/folder-state.ts');
  const pagesChecked = onLocalFiles(() => checkForReading(dataDir));
  const { readAuditEntries } = await import('../store/lmdb/source.ts');
  return { pagesChecked, entries: readable(readAuditEntries(dataDir), 'local_files') };
}

async function logOfDatabase(address: StoreAddress): Promise<AuditLog> {
  const { readAuditLog } = await import('../store/postgresql/source.ts');
  return { pagesChecked: null, entries: readable(readAuditLog(address), 'store_unusable') };
}

async function* readable<T>(
  items: Iterable<T> | AsyncIterable<T>,
  code: string,
): AsyncGenerator<T, void> {
  try {
    yield* items;
  } catch (cause) {
    throw failure(EXIT.unusable, code, cause instanceof Error ? cause.message : String(cause));
  }
}
