/** Copies rows to a place without state. */
import type { StateFacts, StateTarget } from './ports.ts';
import type { RowBatch } from './read.ts';

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
