/** Tables: plain and complete in pipes and files; on a terminal colored, fitted to its width, with short ids and times. */
import { fromNow } from '../../base/duration.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import { shortForms } from './ids.ts';
import {
  cut,
  type Line,
  painted,
  printable,
  type Style,
  type StyledLine,
  stringWidth,
} from './output.ts';

const GAP = '  ';
/** Columns are not truncated below this width. */
const NARROWEST = 8;
/** Columns are omitted before truncatable ones become narrower than this. */
const COMFORTABLE = 16;

export interface Column<Row> {
  readonly title: string;
  cell(row: Row): string | number | bigint | null | undefined;
  /** Ids and keys are shortened to a prefix that commands accept, times become relative, and names are never truncated. */
  readonly holds?: 'id' | 'time' | 'name';
  /** When space is short, columns with the lowest rank are omitted first; columns without a rank never are. */
  readonly rank?: number | undefined;
}

type Layout = Omit<Column<never>, 'cell'>;

export interface TableOptions {
  /** Shows everything as in a pipe. */
  readonly wide?: boolean;
}

/** States that mean the same in every list. */
const STYLES: Readonly<Record<string, Style>> = {
  active: 'green',
  healthy: 'green',
  unused: 'green',
  expiring_soon: 'yellow',
  silent: 'yellow',
  suspended: 'yellow',
  expired: 'red',
  revoked: 'red',
  withdrawn: 'red',
};

export function column<Row>(title: string, cell: Column<Row>['cell'], rank?: number): Column<Row> {
  return { title, cell, rank };
}

export const idColumn = columnOf('id');
export const timeColumn = columnOf('time');

function columnOf(holds: 'id' | 'time') {
  return <Row>(title: string, cell: Column<Row>['cell'], rank?: number): Column<Row> => {
    return { title, cell, holds, rank };
  };
}

export function tableOf<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  options: TableOptions = {},
): Line[] {
  return openTable(columns, options)(rows);
}

/** A table that is shown in parts: the first part has the header and determines the column widths. */
export function openTable<Row>(
  columns: readonly Column<Row>[],
  { wide = false }: TableOptions = {},
): (rows: readonly Row[]) => Line[] {
  const { isTTY = false, columns: room } = process.stdout;
  let layout: readonly Placed[] | null = null;
  return (rows) => {
    const whole = rows.map((row) => columns.map(({ cell }) => printable(String(cell(row) ?? ''))));
    const cells = isTTY && !wide ? inShort(columns, whole) : whole;
    const header = layout === null ? [columns.map(({ title }) => title)] : [];
    layout ??= placed(columns, [...header, ...cells], isTTY && !wide ? room : null);
    const at = layout;
    return [
      ...header.map((row) => lineOf(row, at, () => 'bold')),
      ...cells.map((row) => lineOf(row, at, (cell) => STYLES[cell])),
    ];
  };
}

function inShort(columns: readonly Layout[], rows: readonly (readonly string[])[]): string[][] {
  const now = systemRuntime.now();
  const shorts = columns.map(({ holds }, index) =>
    holds === 'id' ? shortForms(rows.map((row) => row[index] ?? '')) : null,
  );
  return rows.map((row) =>
    row.map((cell, index) => {
      if (columns[index]?.holds !== 'time') return shorts[index]?.get(cell) ?? cell;
      const instant = parseRequestTimestamp(cell);
      return instant === null ? cell : fromNow(instant - now);
    }),
  );
}

/** A column that is shown. */
interface Placed {
  readonly index: number;
  readonly width: number;
}

/** Chooses the columns that fit; `null` means unlimited width. */
function placed(
  columns: readonly Layout[],
  rows: readonly (readonly string[])[],
  room: number | null,
): Placed[] {
  let shown = columns.map((column, index) => ({
    ...column,
    index,
    width: rows.reduce((widest, row) => Math.max(widest, stringWidth(row[index] ?? '')), 0),
    isWhole: index === 0 || column.holds !== undefined,
  }));
  if (room === null) return shown;
  const taken = (most: number) =>
    shown.reduce((sum, { isWhole, width }) => sum + (isWhole ? width : Math.min(width, most)), 0) +
    GAP.length * (shown.length - 1);
  for (const { index } of shown.filter(({ rank }) => rank !== undefined).sort(byRank)) {
    if (taken(COMFORTABLE) <= room) break;
    shown = shown.filter((column) => column.index !== index);
  }
  for (let excess = taken(Number.POSITIVE_INFINITY) - room; excess > 0; excess -= 1) {
    const [widest] = shown.filter(({ isWhole }) => !isWhole).sort((a, b) => b.width - a.width);
    if (widest === undefined || widest.width <= NARROWEST) break;
    widest.width -= 1;
  }
  return shown;
}

function byRank({ rank: a = 0 }: Layout, { rank: b = 0 }: Layout): number {
  return a - b;
}

function lineOf(
  row: readonly string[],
  layout: readonly Placed[],
  styleOf: (cell: string) => Style | undefined,
): StyledLine {
  const cells = layout.map(({ index, width }, place) => {
    const whole = row[index] ?? '';
    const cell = cut(whole, width);
    const style = styleOf(whole);
    const blanks = place === layout.length - 1 ? 0 : Math.max(width - stringWidth(cell), 0);
    return (style === undefined ? cell : painted(style, cell, process.stdout)) + ' '.repeat(blanks);
  });
  return { styled: cells.join(GAP).trimEnd() };
}
