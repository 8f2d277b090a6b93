/**
 * Reads long lists page by page and prints rows as they arrive, in the order and up to the length that `--sort`,
 * `--reverse` and `--limit` give. An incomplete page is requested again.
 */

import type { JsonObject } from '../../base/json/value.ts';
import { COLLATOR } from '../../base/ordered-list.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import { option, WIDE } from './command.ts';
import { usageFailure } from './errors.ts';
import { wholeNumber } from './options.ts';
import { asJson, type OutputOptions, printJsonList, printText } from './output.ts';
import { type Column, openTable, type TableOptions } from './table.ts';
import { counting } from './terminal.ts';

/** All rows of a list, for who needs them at once; shows progress. */
export async function rowsOf<Row>(
  what: string,
  pages: AsyncIterable<readonly Row[]>,
): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const page of counting(`${what} read:`, pages, ({ length }) => length)) {
    for (const row of page) rows.push(row);
  }
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
  if (options.reverse && options.sort === undefined) throw usageFailure('--reverse needs --sort');
  const isShown = process.stdout.isTTY && !options.json && options.sort === undefined;
  const counted = isShown ? pages : counting('Rows read:', pages, ({ length }) => length);
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

export interface ListOptions extends TableOptions {
  /** The key of a column. */
  readonly sort?: string;
  readonly reverse?: boolean;
  readonly limit?: number;
}

export function listOptions<Row>(columns: readonly Column<Row>[]) {
  return [
    WIDE,
    option('--sort <column>', 'sort by this column, which reads the whole list first', {
      choices: columns.map(keyOf),
    }),
    option('--reverse', 'with --sort: the other way around'),
    option('--limit <n>', 'at most this many rows', { parse: wholeNumber() }),
  ] as const;
}

/** The rows that are wanted, in their order. Without `--sort`, no page is read that is not needed. */
export async function* ordered<Row>(
  pages: AsyncIterable<readonly Row[]>,
  columns: readonly Column<Row>[],
  options: ListOptions,
): AsyncGenerator<readonly Row[], void> {
  const { sort, limit = Number.POSITIVE_INFINITY } = options;
  if (sort !== undefined) {
    const rows: Row[] = [];
    for await (const page of pages) for (const row of page) rows.push(row);
    yield orderedRows(rows, columns, options);
    return;
  }
  let left = limit;
  for await (const rows of pages) {
    yield rows.slice(0, left);
    left -= rows.length;
    if (left <= 0) return;
  }
}

/** The same for rows that have all been read. */
export function orderedRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  { sort, reverse = false, limit }: ListOptions,
): readonly Row[] {
  const column = columns.find((each) => keyOf(each) === sort);
  return (column === undefined ? rows : sortedBy(rows, column, reverse)).slice(0, limit);
}

/** `LAST CONTACT` is `last-contact` in options. */
function keyOf({ title }: Pick<Column<never>, 'title'>): string {
  return title.toLowerCase().replaceAll(' ', '-');
}

function sortedBy<Row>(rows: readonly Row[], { cell, holds }: Column<Row>, reverse: boolean) {
  const valued = rows.map((row) => {
    const value = cell(row) ?? '';
    return { row, value: holds === 'time' ? parseRequestTimestamp(String(value)) : value };
  });
  const direction = reverse ? -1 : 1;
  // Rows without a value come last, in whichever direction.
  return valued
    .sort((a, b) => isEmpty(a.value) - isEmpty(b.value) || direction * compared(a.value, b.value))
    .map(({ row }) => row);
}

type Value = string | number | bigint | null;

function isEmpty(value: Value): number {
  return value === null || value === '' ? 1 : 0;
}

function compared(a: Value, b: Value): number {
  if (typeof a === 'string' || typeof b === 'string' || a === null || b === null) {
    return COLLATOR.compare(String(a), String(b));
  }
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
