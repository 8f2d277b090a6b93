/** The rows of a data folder as they are stored. */
import type { GetOptions, RootDatabase } from 'lmdb';
import { DamagedState, type RowKey, type TableName } from '../rows.ts';
import type { MetaRows, RowReader, RowWriter } from '../stored-rows.ts';
import type { Tables } from './environment.ts';

export type Transaction = NonNullable<GetOptions['transaction']>;

/** Enough rows to make the steps of the iteration cheap, few enough to be collected young. */
const BATCH_ROWS = 500;

const VERSIONED: ReadonlySet<TableName> = new Set(['meta', 'subjects']);

/** Without a transaction, the rows as they are when they are read. */
export function lmdbRows(tables: Tables, transaction: Transaction | null): RowReader {
  return {
    scan(table, read, after = null) {
      const range = {
        // Of a table without them, LMDB would say any.
        versions: VERSIONED.has(table),
        ...(transaction !== null && { transaction }),
        ...(after !== null && { start: after, exclusiveStart: true }),
      };
      const rows = tables[table].getRange(range as object) as unknown as Iterable<Entry>;
      return inBatches(table, rows, ({ key, value, version = 0 }) =>
        read({ key, version, row: value }),
      );
    },
  };
}

interface Entry {
  readonly key: RowKey;
  readonly value: Buffer;
  readonly version?: number;
}

export function metaRows({ meta }: Tables, transaction: Transaction | null): MetaRows {
  const rows = meta.getRange(transaction === null ? {} : { transaction });
  return new Map(Array.from(rows, ({ key, value }) => [key, value]));
}

/** Each call is a transaction of its own. */
export function lmdbWriter(env: RootDatabase, tables: Tables): RowWriter {
  const tableOf = (table: TableName) => tables[table] as unknown as WritableTable;
  return {
    async put(table, rows) {
      const written = tableOf(table);
      const isVersioned = VERSIONED.has(table);
      env.transactionSync(() => {
        for (const { key, version, row } of rows) {
          if (isVersioned) written.putSync(key, row, version);
          else written.putSync(key, row);
        }
      });
    },
    async drop(table, keys) {
      const written = tableOf(table);
      env.transactionSync(() => {
        for (const key of keys) written.removeSync(key);
      });
    },
  };
}

interface WritableTable {
  putSync(key: RowKey, row: Buffer, version?: number): unknown;
  removeSync(key: RowKey): unknown;
}

async function* inBatches<Row, Item>(
  table: TableName,
  rows: Iterable<Row>,
  read: (row: Row) => Item,
): AsyncGenerator<readonly Item[], void> {
  let batch: Item[] = [];
  try {
    for (const row of rows) {
      batch.push(read(row));
      if (batch.length < BATCH_ROWS) continue;
      yield batch;
      batch = [];
    }
  } catch (cause) {
    if (cause instanceof DamagedState) throw cause;
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new DamagedState(`table ${table} cannot be read (${problem})`);
  }
  if (batch.length > 0) yield batch;
}
