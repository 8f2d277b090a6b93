/** Reads long lists page by page and prints rows as they arrive. An incomplete page is requested again. */
import type { JsonObject } from '../base/json/value.ts';
import { type ListOptions, ordered } from './list-order.ts';
import { asJson, type OutputOptions, printJsonList, printText } from './output.ts';
import { countedParts } from './progress.ts';
import { type Column, openTable } from './table.ts';

/** Yields one value per row, for searching a whole list, and shows progress. */
export async function* eachOf<Row, Value>(
  what: string,
  pages: AsyncIterable<readonly Row[]>,
  pick: (row: Row) => Value,
): AsyncGenerator<Value, void> {
  for await (const rows of countedParts(`${what} read:`, pages)) yield* rows.map(pick);
}

/** All rows of a list, for who needs them at once. */
export async function rowsOf<Row>(
  what: string,
  pages: AsyncIterable<readonly Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const row of eachOf(what, pages, (each) => each)) rows.push(row);
  return rows;
}

interface Listing<Row> {
  /** The JSON member that contains the rows. */
  readonly member: string;
  readonly columns: readonly Column<Row>[];
  /** The text for an empty list. */
  readonly none: string;
}

/** As text, prints the rows of each page as it arrives; as JSON, prints one object at the end. */
export async function printList<Row extends object>(
  options: OutputOptions & ListOptions,
  pages: AsyncIterable<readonly Row[]>,
  { member, columns, none }: Listing<Row>,
): Promise<void> {
  const isShown = process.stdout.isTTY && !options.json && options.sort === undefined;
  const counted = isShown ? pages : countedParts('Rows read:', pages);
  const read = ordered(counted, columns, options);
  if (options.json) {
    const texts: JsonObject[][] = [];
    for await (const rows of read) texts.push(rows.map(asJson));
    printJsonList(member, texts);
    return;
  }
  const table = openTable(columns, options);
  let isEmpty = true;
  for await (const rows of read) {
    if (rows.length === 0) continue;
    isEmpty = false;
    printText(table(rows));
  }
  if (isEmpty) printText([none]);
}
