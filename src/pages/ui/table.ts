/** Tables of any length: they are paginated, and rows become cards on narrow screens. */

import { shownCount } from '../../base/counts.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import { type Content, type Html, html, NO_HTML } from './html.ts';
import { sovereignLink, timeText } from './values.ts';

export interface Column<Row> {
  readonly head: string;
  readonly cell: (row: Row) => Content;
  /** Classes of the cell. */
  readonly kind?: string;
  /** Whether it names the row. */
  readonly isHead?: boolean;
  /** The URL of the table sorted by this column, and the current direction. */
  readonly sorting?: { readonly href: string; readonly now: 'ascending' | 'descending' | null };
}

/** A column of sovereigns, each a link to its page. */
export function sovereignColumn<Row>(head: string, idOf: (row: Row) => string): Column<Row> {
  return { head, kind: 'name', cell: (row) => sovereignLink(idOf(row)) };
}

/** A column of times. */
export function timeColumn<Row>(
  head: string,
  timeOf: (row: Row) => string,
  kind = 'nowrap',
): Column<Row> {
  return { head, kind, cell: (row) => timeText(timeOf(row)) };
}

export interface TableParts<Row> {
  /** The id of the table, and the prefix of other ids. */
  readonly id: string;
  readonly caption: Content;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** What identifies a row, so that live updates keep it. */
  readonly keyOf?: (row: Row) => string;
}

export function table<Row>({ id, caption, columns, rows, keyOf }: TableParts<Row>): Html {
  return html`<div class="table-box" tabindex="0" role="region" aria-labelledby="${id}-caption">
<table id="${id}">
<caption id="${id}-caption">${caption}</caption>
<thead><tr>${columns.map(columnHead)}</tr></thead>
<tbody>${rows.map((row) => tableRow(columns, row, keyOf === undefined ? NO_HTML : html` id="${`${id}-${idPart(keyOf(row))}`}"`))}</tbody>
</table>
</div>`;
}

function columnHead<Row>({ head, kind = '', sorting }: Column<Row>): Html {
  const name = kind.includes('number') ? html` class="number"` : NO_HTML;
  if (sorting === undefined) return html`<th scope="col"${name}>${head}</th>`;
  const sorted = sorting.now === null ? NO_HTML : html` aria-sort="${sorting.now}"`;
  return html`<th scope="col"${name}${sorted}><a href="${sorting.href}">${head}</a></th>`;
}

/** Each cell carries its column name, which cards on narrow screens show. */
function tableRow<Row>(columns: readonly Column<Row>[], row: Row, id: Html): Html {
  const cells = columns.map(({ head, cell, kind, isHead = false }) => {
    const names = kind === undefined ? NO_HTML : html` class="${kind}"`;
    return isHead
      ? html`<th scope="row"${names} data-label="${head}">${cell(row)}</th>`
      : html`<td${names} data-label="${head}">${cell(row)}</td>`;
  });
  return html`<tr${id}>${cells}</tr>`;
}

/** Names and ids from other sovereigns can be long, and have any characters. */
export function idPart(key: string): string {
  return /^[\w-]{1,40}$/.test(key) ? key : sha256Hex(key).slice(0, 16);
}

const ROWS_OF_PAGE = 50;

export interface RowPage<Row> {
  readonly rows: readonly Row[];
  readonly all: number;
  /** The number of the page; the first is 1. */
  readonly page: number;
  readonly pages: number;
}

/** A page number out of range gets the nearest existing page. */
export function rowPage<Row>(all: readonly Row[], wanted: number): RowPage<Row> {
  const pages = Math.max(1, Math.ceil(all.length / ROWS_OF_PAGE));
  const page = Math.min(Math.max(1, wanted), pages);
  const rows = all.slice((page - 1) * ROWS_OF_PAGE, page * ROWS_OF_PAGE);
  return { rows, all: all.length, page, pages };
}

/** Links to the previous and next page. */
export function pager<Row>(
  label: string,
  { rows, all, page, pages }: RowPage<Row>,
  hrefOf: (page: number) => string,
): Html {
  if (pages === 1) return NO_HTML;
  const first = (page - 1) * ROWS_OF_PAGE + 1;
  const link = (to: number, text: string, rel: string) =>
    to < 1 || to > pages
      ? html`<span class="muted">${text}</span>`
      : html`<a href="${hrefOf(to)}" rel="${rel}">${text}</a>`;
  return html`<nav class="pager" aria-label="${label}">${link(page - 1, 'Previous', 'prev')}<span>${shownCount(first)} to ${shownCount(first + rows.length - 1)} of ${shownCount(all)}</span>${link(page + 1, 'Next', 'next')}</nav>`;
}
