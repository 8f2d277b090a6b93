/** Long lists: read a page at a time, and printed as they come. A page that is cut off is requested again. */
import type { JsonObject } from '../base/json/value.ts';
import { asJson, type OutputOptions, printJsonList, printText } from './output.ts';
import { countedParts } from './progress.ts';
import { type Column, openTable, type TableOptions } from './table.ts';

const ROWS_OF_A_PAGE = 1000;

interface PageQuery {
  readonly limit: number;
  readonly cursor?: string;
}

/** The rows of a list, page by page; `read` requests one page. */
export async function* pagesOf<Page extends { readonly next_cursor?: string }, Row>(
  read: (query: PageQuery) => Promise<Page>,
  rowsIn: (page: Page) => readonly Row[],
): AsyncGenerator<readonly Row[], void> {
  let cursor: string | undefined;
  do {
    const page = await read({ limit: ROWS_OF_A_PAGE, ...(cursor !== undefined && { cursor }) });
    yield rowsIn(page);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

/** One value of each row, for who looks through a whole list; says how far that is. */
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
  /** The member of the JSON that has the rows, and what they are called for people. */
  readonly member: string;
  readonly columns: readonly Column<Row>[];
  /** What is printed when there are none. */
  readonly none: string;
}

/** For people, rows are printed with each page; as JSON, the list is one object, which is printed at its end. */
export async function printList<Row extends object>(
  options: OutputOptions & TableOptions,
  pages: AsyncIterable<readonly Row[]>,
  { member, columns, none }: Listing<Row>,
): Promise<void> {
  const isShown = process.stdout.isTTY && !options.json;
  const read = isShown ? pages : countedParts('Rows read:', pages);
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
