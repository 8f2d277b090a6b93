/** Copies rows to a place without state. */
import type { StateFacts, StateSource, StateTarget } from './ports.ts';
import type { RowBatch } from './read.ts';
import { STREAM_TABLES } from './rows.ts';

/** Leaves nothing behind when the rows or the place fail. */
export async function fill(
  target: StateTarget,
  batches: AsyncIterable<RowBatch>,
  facts: StateFacts,
): Promise<void> {
  try {
    for await (const { table, rows } of batches) await target.write(table, rows);
    await target.finish(facts);
  } catch (cause) {
    await target.abandon();
    throw cause;
  }
}

export async function* batchesOf(source: StateSource): AsyncGenerator<RowBatch> {
  for (const table of STREAM_TABLES) {
    for await (const rows of source.rows(table)) yield { table, rows } as unknown as RowBatch;
  }
}
