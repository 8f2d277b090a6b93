/** Rows a few at a time, so that neither a batch nor the steps of the iteration cost much. */
import type { RowChange } from './ports.ts';

const BATCH_ROWS = 2000;
/** A row may be of many megabytes. */
const BATCH_BYTES = 4 * 1024 ** 2;

export async function* changeBatches(
  rows: Iterable<RowChange>,
): AsyncGenerator<readonly RowChange[], void> {
  let batch: RowChange[] = [];
  let bytes = 0;
  for (const row of rows) {
    batch.push(row);
    bytes += row.row?.length ?? 0;
    if (batch.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}
