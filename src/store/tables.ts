/**
 * The tables of a database and their stored rows. Every database stores the same bytes under a key, so the code that
 * loads a state, checks it for damage, or copies it to another database is the same for all of them.
 */
import { assertTotal, type RowKey, type TableName } from './rows.ts';

export interface StoredRow {
  readonly key: RowKey;
  /** 0 in tables without versions. */
  readonly version: number;
  readonly row: Buffer;
}

export interface ScanOptions {
  /** Reads only the rows after the one with this key; null for all. */
  readonly after?: RowKey | null;
  /** How many rows to read at a time, for a reader that may need only the first few. */
  readonly atOnce?: number;
}

export interface TableReader {
  /**
   * Reads the rows of a table in order. They come in batches, because a step of an asynchronous iteration costs more
   * than a row, and are converted by `read`, because a row is valid only until the next one. Rejects with
   * `DamagedState` if the table cannot be read.
   */
  scan<Item>(
    table: TableName,
    read: (row: StoredRow) => Item,
    options?: ScanOptions,
  ): AsyncIterable<readonly Item[]>;
}

/** Rows to store, which replace rows with the same keys. */
export interface TableChange {
  readonly table: TableName;
  readonly put: readonly StoredRow[];
}

export interface Tables extends TableReader {
  write(changes: readonly TableChange[]): Promise<void>;
}

/** Copies a row so that it stays valid. */
export function keptRow({ key, version, row }: StoredRow): StoredRow {
  return { key, version, row: Buffer.from(row) };
}

/** Passes the batches through; throws after the last one unless there were `total` rows. */
export async function* counted<Item>(
  table: TableName,
  total: number,
  batches: AsyncIterable<readonly Item[]>,
): AsyncGenerator<readonly Item[], void> {
  let count = 0;
  for await (const batch of batches) {
    count += batch.length;
    yield batch;
  }
  assertTotal(table, count, total);
}
