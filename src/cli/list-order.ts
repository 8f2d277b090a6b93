/** The order and the length of a list, as `--sort`, `--reverse` and `--limit` give them. */
import { type Command, Option } from 'commander';
import { parseRequestTimestamp } from '../base/timestamp.ts';
import { wholeNumber } from './options.ts';
import { addWideOption, type Column, type TableOptions } from './table.ts';

export interface ListOptions extends TableOptions {
  /** The key of a column. */
  readonly sort?: string;
  readonly reverse?: boolean;
  readonly limit?: number;
}

export function addListOptions<Row>(command: Command, columns: readonly Column<Row>[]): Command {
  const sort = new Option(
    '--sort <column>',
    'sort by this column, which reads the whole list first',
  );
  return addWideOption(command)
    .addOption(sort.choices(columns.map(keyOf)))
    .option('--reverse', 'with --sort: the other way around')
    .option('--limit <n>', 'at most this many rows', wholeNumber());
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

/** Numbers in names count as numbers: web-2 comes before web-10. */
const COLLATOR = new Intl.Collator('en', { numeric: true });

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
