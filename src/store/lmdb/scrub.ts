/** Checks part of a data folder for damage while the service writes to it. */
import type { RootDatabase } from 'lmdb';
import { metaValue } from '../meta-rows.ts';
import { DamagedState, TABLES } from '../rows.ts';
import { type ScrubbedPart, type ScrubPlace, scrubRows } from '../scrub.ts';
import { countProblem } from '../totals.ts';
import { checkForReading } from './folder-state.ts';
import {
  entriesOf,
  lmdbTables,
  type OpenTables,
  openEnvironment,
  openTables,
  type Transaction,
} from './tables.ts';

/**
 * Checks one part; the first part includes the pages of the database. Rejects if there is no state or it cannot be
 * opened.
 */
export async function scrubFolder(
  dataDir: string,
  from: ScrubPlace | null,
  parts: number,
): Promise<ScrubbedPart> {
  try {
    if (from === null) checkForReading(dataDir);
  } catch (cause) {
    // LMDB would follow invalid references in a damaged page.
    if (cause instanceof DamagedState) return { rows: 0, damaged: [cause.what], next: null };
    throw cause;
  }
  const env = openEnvironment(dataDir, true);
  try {
    return await scrubTables(env, from, parts);
  } finally {
    await env.close();
  }
}

async function scrubTables(
  env: RootDatabase,
  from: ScrubPlace | null,
  parts: number,
): Promise<ScrubbedPart> {
  const opened = openTables(env);
  const transaction = env.useReadTransaction();
  try {
    const store = {
      total: TABLES.reduce((sum, table) => sum + entriesOf(opened, table), 0),
      problems: from === null ? logProblems(opened, transaction) : [],
      tables: lmdbTables(opened, transaction),
    };
    return await scrubRows(store, from, parts);
  } finally {
    transaction.done();
  }
}

/** Only the audit log needs this: the page check has already counted the rows of the other tables. */
function logProblems({ meta, audit }: OpenTables, transaction: Transaction): readonly string[] {
  const [last = 0] = audit.getKeys({ transaction, reverse: true, limit: 1 });
  try {
    const totals = metaValue({ get: (key) => meta.get(key, { transaction }) }, 'totals');
    return [countProblem('auditEntries', last, totals) ?? []].flat();
  } catch {
    // The damage is reported when the row is read.
    return [];
  }
}
