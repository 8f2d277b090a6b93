/** Tables of treaties and revocations, with everything that the drawing shows. */
import { sortedInSlices } from '../../base/work.ts';
import { TREATY_ORDERS } from '../../protocol/api/pages.ts';
import type { BlastRadiusRow, EdgeRow, RevokedMaterial } from '../../protocol/rows/graph.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { type Content, type Html, html, NO_HTML } from '../ui/html.ts';
import { badge, choiceField, stateBadge, wordChoices } from '../ui/parts.ts';
import { type Column, sovereignColumn, table, timeColumn } from '../ui/table.ts';
import { idText, linksInLine, nameInCell, sovereignLink, treatyLink } from '../ui/values.ts';
import type { EdgeState, GraphModel, GraphTreaty } from './model.ts';

/** Chooses among the states of treaties. */
export function stateField(chosen: EdgeState | null): Html {
  return choiceField('state', 'Treaty state', wordChoices(LIFECYCLE_STATES), chosen ?? '');
}

/** Returns how a column of the treaty table is sorted. */
export type Sorting = (order: TreatyOrder) => NonNullable<Column<EdgeRow>['sorting']>;

/** `without` leaves out the column of the sovereign whose treaties these all are; the first column names the row. */
export function edgesTable(
  id: string,
  caption: Content,
  rows: readonly EdgeRow[],
  { sorting, without }: { readonly sorting?: Sorting; readonly without?: 'from' | 'to' } = {},
): Html {
  const [head, ...rest] = EDGE_COLUMNS.filter(({ order }) => order !== without).map(
    ({ order, ...column }) =>
      sorting === undefined ? column : { ...column, sorting: sorting(order) },
  );
  const columns = head === undefined ? [] : [{ ...head, isHead: true }, ...rest];
  // Only the sorted table is on a live page.
  if (sorting === undefined) return table({ id, caption, rows, columns });
  return table({ id, caption, rows, columns, keyOf: ({ treaty_id }) => treaty_id });
}

const EDGE_COLUMNS: readonly (Column<EdgeRow> & { readonly order: TreatyOrder })[] = [
  { ...sovereignColumn('Issuer', (row) => row.from), order: 'from' },
  { ...sovereignColumn('Subject', (row) => row.to), order: 'to' },
  {
    head: 'State',
    order: 'state',
    kind: 'first',
    cell: ({ lifecycle_state }) => badge(stateBadge(lifecycle_state)),
  },
  { ...timeColumn('From', (row) => row.valid_from), order: 'begins' },
  { ...timeColumn('Until', (row) => row.expires_at, 'nowrap first'), order: 'ends' },
  { head: 'Treaty', order: 'id', kind: 'id', cell: ({ treaty_id }) => treatyLink(treaty_id) },
];

export function materialTable(
  caption: string,
  rows: readonly RevokedMaterial[],
  treatyOf: GraphModel['treaty'],
): Html {
  return table({
    id: 'revoked-material',
    caption,
    rows,
    columns: [
      timeColumn('Revoked', (row: RevokedMaterial) => row.revoked_at, 'nowrap first'),
      { head: 'What', kind: 'nowrap first', cell: kindOf },
      { head: 'Whose', kind: 'name', cell: (row) => partiesOf(row, treatyOf) },
      { head: 'Reason', kind: 'name', cell: ({ reason }) => reasonText(reason) },
      { head: 'Id', kind: 'id', isHead: true, cell: materialId },
    ],
    keyOf: (row) => `${row.id} ${row.type === 'recognition_treaty' ? '' : row.issuer_sovereign_id}`,
  });
}

function partiesOf(row: RevokedMaterial, treatyOf: GraphModel['treaty']): Html {
  if (row.type !== 'recognition_treaty') return sovereignLink(row.issuer_sovereign_id);
  const treaty = treatyOf(row.id);
  if (treaty === undefined) return NO_HTML;
  return html`<span>${sovereignLink(treaty.from)}, for ${sovereignLink(treaty.to)}</span>`;
}

/** Attestations of other sovereigns have no page here. */
function materialId({ type, id }: RevokedMaterial): Html {
  return type === 'recognition_treaty' ? treatyLink(id) : idText(id);
}

function kindOf(row: RevokedMaterial): string {
  if (row.type === 'membership_attestation') return 'Attestation';
  return row.lifecycle_state === 'replaced' ? 'Treaty, replaced' : 'Treaty';
}

function reasonText(reason: string | null): Html {
  return html`<bdi>${reason === null ? 'none given' : nameInCell(reason)}</bdi>`;
}

export function blastRadiusTable(caption: Content, rows: readonly BlastRadiusRow[]): Html {
  return table({
    id: 'blast-radius',
    caption,
    rows,
    columns: BLAST_COLUMNS,
    keyOf: ({ id, issuer_sovereign_id }) => `${id} ${issuer_sovereign_id}`,
  });
}

const BLAST_COLUMNS: readonly Column<BlastRadiusRow>[] = [
  { head: 'Attestation', kind: 'id', isHead: true, cell: ({ id }) => idText(id) },
  sovereignColumn('Revoked by', (row) => row.issuer_sovereign_id),
  {
    head: 'Affected',
    kind: 'name',
    cell: ({ affected_accepting_sovereigns: ids }) =>
      ids.length === 0
        ? html`<span class="muted">none now</span>`
        : linksInLine(ids, sovereignLink),
  },
  { head: 'Reason', kind: 'name', cell: ({ reason }) => reasonText(reason) },
  timeColumn('Imported', (row) => row.revoked_at, 'nowrap first'),
];

/** The filter and order of a treaty list, as a plain URL that can be bookmarked and shared, and what it finds. */

type TreatyOrder = (typeof TREATY_ORDERS)[number];

export interface TreatyQuery {
  /** Part of the name of either party, or of the id. */
  readonly search: string;
  readonly state: EdgeState | null;
  /** Null for the order of the graph: by recognizing, then by recognized sovereign. */
  readonly order: TreatyOrder | null;
  readonly isDescending: boolean;
  readonly page: number;
  /** The pages of the two other tables. */
  readonly blast: number;
  readonly material: number;
}

export const EVERY_TREATY: TreatyQuery = {
  search: '',
  state: null,
  order: null,
  isDescending: false,
  page: 1,
  blast: 1,
  material: 1,
};

/** Part of a name is enough, and every link on the page repeats it. */
const LONGEST_SEARCH = 256;

/** The parameters of a URL; invalid ones are ignored. */
type TreatyParameters = {
  readonly [name in 'q' | 'state' | 'sort' | 'page' | 'blast' | 'material']?: string | null;
};

export function treatyQuery(given: TreatyParameters): TreatyQuery {
  const sort = given.sort ?? '';
  const order = sort.replace(/^-/, '');
  return {
    search: (given.q ?? '').trim().slice(0, LONGEST_SEARCH),
    state: LIFECYCLE_STATES.find((state) => state === given.state) ?? null,
    order: TREATY_ORDERS.find((each) => each === order) ?? null,
    isDescending: sort.startsWith('-'),
    page: pageNumber(given.page ?? ''),
    blast: pageNumber(given.blast ?? ''),
    material: pageNumber(given.material ?? ''),
  };
}

/** Parses a page number from a URL; invalid text means the first page. */
export function pageNumber(text: string): number {
  return /^[1-9]\d{0,6}$/.test(text) ? Number(text) : 1;
}

/** The URL parameters of the query, with a leading question mark; empty for the default query. */
export function parametersOf(query: TreatyQuery): string {
  const parameters = new URLSearchParams();
  if (query.search !== '') parameters.set('q', query.search);
  if (query.state !== null) parameters.set('state', query.state);
  if (query.order !== null) {
    parameters.set('sort', `${query.isDescending ? '-' : ''}${query.order}`);
  }
  for (const name of ['page', 'blast', 'material'] as const) {
    if (query[name] > 1) parameters.set(name, String(query[name]));
  }
  return parameters.size === 0 ? '' : `?${parameters}`;
}

/** Sorting these takes a few milliseconds. */
const ROWS_PER_SLICE = 2000;

/** All treaties in the order of the query, sorted in slices. Those that compare equal keep the order of the graph. */
export function* treatiesInOrder(
  { treaties }: GraphModel,
  { order, isDescending }: Pick<TreatyQuery, 'order' | 'isDescending'>,
): Generator<void, readonly GraphTreaty[]> {
  if (order === null) return treaties;
  const value = VALUES[order];
  const sign = isDescending ? -1 : 1;
  const entries = treaties.map((treaty) => ({ treaty, value: value(treaty) }));
  const sorted = yield* sortedInSlices(entries, ROWS_PER_SLICE, (a, b) =>
    a.value === b.value ? 0 : a.value < b.value ? -sign : sign,
  );
  return sorted.map(({ treaty }) => treaty);
}

/** The treaties that match the query, on all pages, in the order given. */
export function foundTreaties(
  { nodes }: GraphModel,
  inOrder: readonly GraphTreaty[],
  { search, state }: TreatyQuery,
): readonly GraphTreaty[] {
  if (search === '' && state === null) return inOrder;
  const part = search.toLowerCase();
  const named = new Set(nodes.filter(({ lower }) => lower.includes(part)));
  return inOrder.filter(
    ({ row, from, to, lower }) =>
      (state === null || row.lifecycle_state === state) &&
      (named.has(from) || named.has(to) || lower.includes(part)),
  );
}

const VALUES: Readonly<Record<TreatyOrder, (treaty: GraphTreaty) => string | number>> = {
  from: ({ from }) => from.index,
  to: ({ to }) => to.index,
  state: ({ row }) => LIFECYCLE_STATES.indexOf(row.lifecycle_state),
  begins: ({ row }) => row.valid_from,
  ends: ({ row }) => row.expires_at,
  id: ({ row }) => row.treaty_id,
};
