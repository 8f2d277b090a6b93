/** Tables: plain and whole in a pipe or a file, colored and as wide as the terminal on one. */
import Table from 'cli-table3';
import stringWidth from 'string-width';
import { type Line, printable, type StyledLine } from './printable.ts';
import { painted, type Style } from './style.ts';

const GAP = '  ';
/** No column is made narrower; one that was narrower before stays as it is. */
const NARROWEST = 8;
/** The library takes a time that grows with the square of the rows. */
const ROWS_AT_ONCE = 100;

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** States that mean the same in every list. */
const STYLES: Readonly<Record<string, Style>> = {
  active: 'green',
  healthy: 'green',
  expiring_soon: 'yellow',
  suspended: 'yellow',
  expired: 'red',
  revoked: 'red',
};

/** The first row is the header; the first column, which names a row, and ids are never cut. */
export function tableOf(rows: readonly (readonly string[])[]): Line[] {
  const cells = rows.map((row) => row.map(printable));
  const { isTTY, columns } = process.stdout;
  return isTTY ? fittedTable(cells, columns) : alignedTable(cells);
}

/** Rows as lines with columns padded to their widest cell. */
function alignedTable(rows: readonly (readonly string[])[]): Line[] {
  const widths = widthsOf(rows, (cell) => cell.length);
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

function fittedTable(rows: readonly (readonly string[])[], columns: number): StyledLine[] {
  const isWhole = (column: number) => column === 0 || holdsIds(rows, column);
  const widths = fitted(widthsOf(rows, stringWidth), isWhole, columns);
  const lines: StyledLine[] = [];
  for (let first = 0; first < rows.length; first += ROWS_AT_ONCE) {
    const table = new Table({
      chars: { ...NO_FRAME, middle: GAP },
      style: PLAIN,
      colWidths: widths,
    });
    const some = rows.slice(first, first + ROWS_AT_ONCE);
    table.push(
      ...some.map((row, index) => row.map((cell) => styledCell(cell, first + index === 0))),
    );
    lines.push(...`${table}`.split('\n').map((line) => ({ styled: line.trimEnd() })));
  }
  return lines;
}

const NO_FRAME = Object.fromEntries(
  ['top', 'bottom', 'left', 'right', 'mid'].flatMap((side) => [
    [side, ''],
    ...['left', 'mid', 'right'].map((corner) => [`${side}-${corner}`, '']),
  ]),
);
const PLAIN = { 'padding-left': 0, 'padding-right': 0, head: [], border: [] };

function styledCell(cell: string, isHeader: boolean): string {
  const style = isHeader ? 'bold' : STYLES[cell];
  return style === undefined ? cell : painted(style, cell, process.stdout);
}

function widthsOf(rows: readonly (readonly string[])[], width: (cell: string) => number): number[] {
  return (rows[0] ?? []).map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, width(row[column] ?? '')), 0),
  );
}

/** Takes what is too much from the widest columns that may be cut. */
function fitted(
  widths: readonly number[],
  isWhole: (column: number) => boolean,
  columns: number,
): number[] {
  const left = [...widths];
  const cut = [...left.keys()].filter((column) => !isWhole(column));
  let excess = left.reduce((sum, width) => sum + width, GAP.length * (left.length - 1)) - columns;
  while (excess > 0) {
    const [widest = -1, next = -1] = cut.toSorted((a, b) => (left[b] ?? 0) - (left[a] ?? 0));
    const width = left[widest] ?? 0;
    if (width <= NARROWEST) break;
    const less = Math.min(excess, Math.max(width - Math.max(left[next] ?? 0, NARROWEST), 1));
    left[widest] = width - less;
    excess -= less;
  }
  return left;
}

/** Who copies an id needs all of it. */
function holdsIds(rows: readonly (readonly string[])[], column: number): boolean {
  return rows.length > 1 && rows.slice(1).every((row) => ID.test(row[column] ?? ''));
}
