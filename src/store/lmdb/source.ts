/** Reads a snapshot of the state from LMDB, even while another process writes to it. */
import type { RootDatabase } from 'lmdb';
import { decodeEntries } from '../audit-log.ts';
import { metaValue, readMeta } from '../meta-rows.ts';
import { DamagedState } from '../rows.ts';
import type { AuditEntry } from '../store.ts';
import type { StateSource } from '../stream/ports.ts';
import { readingOf } from '../stream/source.ts';
import { checkForReading } from './folder-state.ts';
import { assertSchema, DATABASE, isClosed } from './ownership.ts';
import { lmdbTables, type OpenTables, openEnvironment, openMeta, openTables } from './tables.ts';

/** Rejects with a one-sentence error if there is no state or it is damaged. */
export async function openLmdbSource(dataDir: string): Promise<StateSource> {
  const { env, opened } = openForReading(dataDir);
  const transaction = env.useReadTransaction();
  let isOpen = true;

  async function close(): Promise<void> {
    if (!isOpen) return;
    isOpen = false;
    transaction.done();
    await env.close();
  }

  try {
    assertSchema(opened.meta.get('schema', { transaction }), false);
    const tables = lmdbTables(opened, transaction);
    const meta = await readMeta(tables);
    const network = metaValue(meta, 'network');
    if (network === null) throw new DamagedState('it does not say whose it is');
    const reading = await readingOf({
      network,
      meta,
      tables,
      database: DATABASE,
      isClosed: isClosed(opened, { transaction }),
    });
    return { ...reading, close };
  } catch (cause) {
    await close();
    throw cause;
  }
}

function openForReading(dataDir: string): { env: RootDatabase; opened: OpenTables } {
  checkForReading(dataDir);
  const env = openEnvironment(dataDir, true);
  try {
    // Check first, because other layouts have other tables.
    assertSchema(openMeta(env).get('schema'), false);
    return { env, opened: openTables(env) };
  } catch (cause) {
    void env.close();
    throw cause;
  }
}

/** Reads the audit entries of a data directory in order, even while a server is using it. */
export function* readAuditEntries(dataDir: string): Generator<AuditEntry> {
  const env = openEnvironment(dataDir, true);
  try {
    const { audit } = openTables(env);
    for (const { key, value } of audit.getRange())
      yield* decodeEntries({ key, version: 0, row: value });
  } finally {
    void env.close();
  }
}
