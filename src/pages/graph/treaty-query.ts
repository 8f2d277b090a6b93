/** The filter and order of a treaty list, as a plain URL that can be bookmarked and shared, and what it finds. */

import { sortedInSlices } from '../../base/work.ts';
import { TREATY_ORDERS } from '../../protocol/api/pages.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import type { EdgeState, GraphModel, GraphTreaty } from './model.ts';

export type TreatyOrder = (typeof TREATY_ORDERS)[number];

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
export type TreatyParameters = {
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
