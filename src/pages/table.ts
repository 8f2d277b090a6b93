/** Tables of any length, whose rows live updates change one by one. */
import { sha256Hex } from '../crypto/digest.ts';
import { type Html, html, keyed, NO_HTML } from './html.ts';

/** The most rows of a table; the underlying documents have all of them. */
export const MOST_ROWS = 1500;

export interface Column {
  readonly head: string;
  readonly isNumber?: boolean;
}

export interface TableParts<Row> {
  /** Of the table, and the beginning of other ids. */
  readonly id: string;
  readonly caption: Html;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** What tells a row from the others. */
  readonly keyOf: (row: Row) => string;
  readonly row: (row: Row) => Html;
}

export function table<Row>({ id, caption, columns, rows, keyOf, row }: TableParts<Row>): Html {
  return html`<div class="table-box" tabindex="0" role="region" aria-labelledby="${id}-caption">
<table id="${id}">
${keyed('caption', html`<caption id="${id}-caption">${caption}</caption>`)}
<thead><tr>${columns.map(columnHead)}</tr></thead>
${keyed('rows', html`<tbody>${rows.map((each) => keyed(shortKey(keyOf(each)), row(each)))}</tbody>`)}
</table>
</div>
`;
}

const NUMBER = html` class="number"`;

function columnHead({ head, isNumber = false }: Column): Html {
  return html`<th scope="col"${isNumber ? NUMBER : NO_HTML}>${head}</th>`;
}

const LONGEST_KEY = 40;

/** Names and ids of others can be long. */
export function shortKey(key: string): string {
  return key.length <= LONGEST_KEY ? key : sha256Hex(key).slice(0, 16);
}
