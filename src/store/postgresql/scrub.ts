/** Checks part of a database for damage while an instance writes to it. */
import type { Client } from 'pg';
import { metaValue } from '../meta-rows.ts';
import { DamagedState, TABLES } from '../rows.ts';
import { type ScrubbedPart, type ScrubPlace, scrubRows } from '../scrub.ts';
import { type CountedTotal, countProblem } from '../totals.ts';
import type { StoreAddress } from './address.ts';
import { onPrimary } from './connect.ts';
import { assertSchema } from './schema.ts';
import { countRows, postgresqlTables } from './tables.ts';
import { unreadableBecause } from './unreadable.ts';

/** Rejects if the database cannot be queried. */
export function scrubDatabase(
  address: StoreAddress,
  from: ScrubPlace | null,
  parts: number,
): Promise<ScrubbedPart> {
  return onPrimary(address, async (client, shown) => {
    const store = {
      total: await countAllRows(client),
      problems: await problemsOf(client, shown, from === null),
      // Without a transaction, because each row is complete by itself, and a long transaction would hold back cleanup
      // in the database.
      tables: postgresqlTables(client),
    };
    return scrubRows(store, from, parts);
  });
}

/** The rows are counted at the beginning of each round. */
async function problemsOf(
  client: Client,
  shown: string,
  isFirst: boolean,
): Promise<readonly string[]> {
  try {
    await assertSchema(client, shown);
  } catch (cause) {
    // The damage hides the version, which the running service read when it started.
    if (cause instanceof DamagedState) return [cause.what];
    throw cause;
  }
  return isFirst ? lostRows(client) : [];
}

/** Statements that count the rows that can actually be read, instead of the entries of an index. */
const COUNTS: readonly (readonly [CountedTotal, string])[] = [
  ['subjects', 'count(*)::float8 from mesh_na.subjects'],
  ['nonceRows', 'count(*)::float8 from mesh_na.nonces'],
  ['auditEntries', 'coalesce(max(last_entry), 0)::float8 from mesh_na.audit'],
];

/**
 * Counts the rows, because PostgreSQL treats a page that was never written, or that a disk lost, as empty and
 * continues.
 */
async function lostRows(client: Client): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const [counted, text] of COUNTS) {
    try {
      const { found, row } = await countedWithTotals(client, text);
      // The row is empty until the first change.
      const meta = { get: () => (row?.length ? row : undefined) };
      const problem =
        row === null
          ? 'table meta has no totals'
          : countProblem(counted, found, metaValue(meta, 'totals'));
      if (problem !== null && !problems.includes(problem)) problems.push(problem);
    } catch (cause) {
      // The damage is found again when the rows are read.
      if (!(cause instanceof DamagedState)) assertOfFiles(cause);
    }
  }
  return problems;
}

/**
 * The number of rows found, and the row of the totals. One statement reads both, so that they are from the same
 * moment.
 */
async function countedWithTotals(client: Client, text: string) {
  try {
    await client.query(`begin read only;
      set local enable_seqscan = on;
      set local enable_indexonlyscan = off;
      set local max_parallel_workers_per_gather = 0`);
    const { rows } = await client.query<{ found: number; totals: Buffer | null }>(
      `select (select ${text}) as found,
        (select value from mesh_na.meta where key = 'totals') as totals`,
    );
    return { found: rows[0]?.found ?? 0, row: rows[0]?.totals ?? null };
  } finally {
    await client.query('rollback');
  }
}

/** Rethrows an error that does not concern the files of a table. */
function assertOfFiles(cause: unknown): void {
  if (unreadableBecause(cause) === null) throw cause;
}

/** An unreadable table is not counted. */
async function countAllRows(client: Client): Promise<number> {
  let total = 0;
  for (const table of TABLES) {
    try {
      total += await countRows(client, table);
    } catch (cause) {
      if (!(cause instanceof DamagedState)) throw cause;
    }
  }
  return total;
}
