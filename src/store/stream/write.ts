/** Writes a state as a portable stream: the manifest, then the rows, one line each [backup-1]. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../base/json/write.ts';
import type { Manifest, TableSummaries } from './manifest.ts';
import type { StateReading } from './ports.ts';
import { lineOf, STREAM_TABLES, type StreamRows, type StreamTable } from './rows.ts';

export type RowWatcher = <Table extends StreamTable>(table: Table, row: StreamRows[Table]) => void;

/** Reads all rows once beforehand, because the manifest precedes them and contains their counts and digests. */
export async function summarize(
  source: Pick<StateReading, 'rows'>,
  watch: RowWatcher = () => undefined,
): Promise<TableSummaries> {
  const summaries = new Map<StreamTable, { rows: number; sha256: string }>();
  for (const table of STREAM_TABLES) {
    const hash = createHash('sha256');
    let rows = 0;
    for await (const batch of source.rows(table)) {
      rows += batch.length;
      for (const row of batch) watch(table, row);
      hash.update(linesOf(table, batch));
    }
    summaries.set(table, { rows, sha256: hash.digest('hex') });
  }
  return Object.fromEntries(summaries) as TableSummaries;
}

export async function* streamOf(
  manifest: Manifest,
  source: Pick<StateReading, 'rows'>,
): AsyncGenerator<Buffer> {
  yield Buffer.from(`${canonicalJson(manifest)}\n`);
  for (const table of STREAM_TABLES) {
    for await (const batch of source.rows(table)) yield Buffer.from(linesOf(table, batch));
  }
}

function linesOf<Table extends StreamTable>(
  table: Table,
  rows: readonly StreamRows[Table][],
): string {
  return rows.map((row) => `${lineOf(table, row)}\n`).join('');
}
