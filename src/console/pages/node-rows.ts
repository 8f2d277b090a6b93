/** What the console reads of nodes: their rows, which are their certificates, and their agents. */
import { COLLATOR } from '../../base/ordered-list.ts';
import { AuthorityError } from '../../client/authority-error.ts';
import { type CertificateFilters, certificatePages } from '../../client/nodes.ts';
import { type Html, html } from '../../pages/ui/html.ts';
import { badge } from '../../pages/ui/parts.ts';
import { nameInCell } from '../../pages/ui/values.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import {
  type CertificateRow,
  isSilentNode,
  reportsHealth,
} from '../../protocol/rows/certificate.ts';
import { labelTexts } from '../../protocol/rows/node-description.ts';
import type { Context } from '../context.ts';
import { filtersFor, type NodeQuery } from './node-filter.ts';

export const ROWS_OF_PAGE = 50;
/** A page of the authority can be empty after a long search; this is the most that are asked for at once. */
const MOST_SEARCHES = 5;
/** A sorted list is read as a whole, up to this many rows. */
const MOST_SORTED = 5000;

export interface FoundNodes {
  readonly rows: readonly CertificateRow[];
  /** Null at the end of the list. */
  readonly nextCursor: string | null;
  /** Which meaning of the searched text the rows have. */
  readonly meaning: number;
  /** Whether there were too many rows to sort. */
  readonly isUnsorted: boolean;
}

type Found = Omit<FoundNodes, 'meaning'>;

/** The rows of one page, of the first meaning that has any. */
export async function findNodes(context: Context, query: NodeQuery): Promise<FoundNodes> {
  const meanings = filtersFor(query, context.now());
  for (let { meaning, cursor } = query; ; meaning += 1, cursor = '') {
    const filters = meanings[meaning];
    if (filters === undefined) return { rows: [], nextCursor: null, isUnsorted: false, meaning };
    const found =
      query.sort === null
        ? await pageOf(context, filters, cursor)
        : await sortedRows(context, filters, { ...query, cursor });
    if (found.rows.length > 0 || found.nextCursor !== null) return { ...found, meaning };
  }
}

/**
 * One page of the ranges, worst first. Each is read by cursor, so that a page costs the same wherever it is; a node
 * whose state changes between two pages can be on both, or on neither.
 */
async function pageOf(
  context: Context,
  filters: CertificateFilters,
  cursor: string,
): Promise<Found> {
  const { client } = context;
  const ranges = rangesOf(context, filters, cursor);
  const rows: CertificateRow[] = [];
  let [range, next] = placeIn(cursor, ranges.length);
  for (; range < ranges.length && rows.length < ROWS_OF_PAGE; range += 1) {
    const found = await rangeFrom(client, ranges[range] ?? {}, next, ROWS_OF_PAGE - rows.length);
    rows.push(...(ranges.length === 1 ? found.rows : byName(found.rows)));
    next = found.next;
    if (next !== '') break;
  }
  const isEnd = range >= ranges.length;
  const place = ranges.length === 1 ? next : `${range}.${next}`;
  return { rows, nextCursor: isEnd ? null : place, isUnsorted: false };
}

/** Nodes in use, in the states that follow each other; anything else, and a healthy fleet, is one range, by id. */
function rangesOf(
  { fleet }: Context,
  filters: CertificateFilters,
  cursor: string,
): readonly CertificateFilters[] {
  const isByState = cursor === '' ? fleet?.healthy !== fleet?.expected : RANGED.test(cursor);
  if (filters.status !== 'in_use' || filters.health !== undefined || !isByState) return [filters];
  return [
    { ...filters, status: 'silent' },
    { ...filters, status: 'active', health: 'unwell' },
    { ...filters, status: 'active', health: 'well' },
  ];
}

/** A cursor of several ranges begins with the number of one. */
const RANGED = /^(\d)\.(.*)$/;

function placeIn(cursor: string, ranges: number): [range: number, cursor: string] {
  const [, range, rest] = RANGED.exec(cursor) ?? [];
  return ranges === 1 || range === undefined ? [0, cursor] : [Number(range), rest ?? ''];
}

/** `next` is empty at the end of the range. */
async function rangeFrom(
  client: Context['client'],
  filters: CertificateFilters,
  cursor: string,
  most: number,
): Promise<{ readonly rows: readonly CertificateRow[]; readonly next: string }> {
  const rows: CertificateRow[] = [];
  let next = cursor;
  for (let searches = 0; searches < MOST_SEARCHES; searches += 1) {
    const page = await client.listCertificates({
      ...filters,
      limit: most - rows.length,
      ...(next !== '' && { cursor: next }),
    });
    rows.push(...page.certificates);
    next = page.next_cursor ?? '';
    if (next === '' || rows.length === most) break;
  }
  return { rows, next };
}

function byName(rows: readonly CertificateRow[]): CertificateRow[] {
  return rows.toSorted((a, b) => COLLATOR.compare(VALUES.name(a), VALUES.name(b)));
}

async function sortedRows(
  context: Context,
  filters: CertificateFilters,
  query: NodeQuery,
): Promise<Found> {
  const rows: CertificateRow[] = [];
  for await (const row of eachNode(context, filters)) {
    if (rows.length === MOST_SORTED) {
      return { ...(await pageOf(context, filters, query.cursor)), isUnsorted: true };
    }
    rows.push(row);
  }
  const value = VALUES[query.sort ?? 'name'];
  const sign = query.isDescending ? -1 : 1;
  rows.sort((a, b) => sign * COLLATOR.compare(value(a), value(b)));
  const start = /^\d{1,6}$/.test(query.cursor) ? Number(query.cursor) : 0;
  const end = start + ROWS_OF_PAGE;
  return {
    rows: rows.slice(start, end),
    nextCursor: end < rows.length ? String(end) : null,
    isUnsorted: false,
  };
}

const VALUES = {
  name: (row: CertificateRow) => row.name ?? row.hostname ?? row.node_public_key,
  contact: (row: CertificateRow) => row.last_contact,
  expires: (row: CertificateRow) => row.expires_at,
};

/** All rows that pass the filters, page by page. */
export async function* eachNode(
  { client }: Context,
  filters: CertificateFilters,
): AsyncGenerator<CertificateRow, void> {
  for await (const rows of certificatePages(client, filters)) yield* rows;
}

/** All rows of the first meaning of the search that has any. */
export async function* eachFound(
  context: Context,
  query: NodeQuery,
): AsyncGenerator<CertificateRow, void> {
  for (const filters of filtersFor(query, context.now())) {
    let isFound = false;
    for await (const row of eachNode(context, filters)) {
      isFound = true;
      yield row;
    }
    if (isFound) return;
  }
}

/** A key renews often; the rows are bounded by retention. */
const MOST_CERTIFICATES = 1000;

/** The certificates of a key that are stored, the newest first. */
export async function certificatesOf(context: Context, key: string): Promise<CertificateRow[]> {
  const rows: CertificateRow[] = [];
  for await (const row of eachNode(context, { key })) {
    if (row.node_public_key === key) rows.push(row);
    if (rows.length === MOST_CERTIFICATES) break;
  }
  return rows.sort((a, b) => (a.issued_at < b.issued_at ? 1 : -1));
}

/** Null if no agent is registered with the key. */
export function agentOf({ publicClient }: Context, key: string): Promise<AgentDescriptor | null> {
  return publicClient.readAgent({ node_public_key: key }).catch((error: unknown) => {
    if (error instanceof AuthorityError && error.status === 404) return null;
    throw error;
  });
}

type Titled = Pick<CertificateRow, 'name' | 'hostname' | 'node_public_key'>;

/** A host name is in parentheses: a node must not look as if operators had named it. */
export function nodeTitle({ name, hostname, node_public_key: key }: Titled): string {
  if (name !== undefined) return nameInCell(name);
  return hostname === undefined ? `${key.slice(0, 12)}…` : `(${nameInCell(hostname)})`;
}

export function nodeLink(node: Titled): Html {
  return html`<a href="${nodeAddress(node.node_public_key)}"><bdi>${nodeTitle(node)}</bdi></a>`;
}

export function nodeAddress(nodePublicKey: string): string {
  return `./node?${new URLSearchParams({ key: nodePublicKey })}`;
}

const TONES: Readonly<Record<CertificateRow['status'], string>> = {
  active: 'ok',
  silent: 'warn',
  renewed: 'neutral',
  superseded: 'neutral',
  expired: 'neutral',
  revoked: 'danger',
};

export function statusBadge({ status }: CertificateRow): Html {
  return badge({ tone: TONES[status], word: status });
}

/** The worst that is known of the node in one word, and what it said last if that was not good. */
export function worstState(row: CertificateRow): Html {
  const { status, node_status: said } = row;
  if (status === 'silent' && !isSilentNode(row)) return badge({ tone: 'neutral', word: said });
  if (reportsHealth(said)) return statusBadge(row);
  const isActive = status === 'active';
  const word = isActive ? badge({ tone: 'danger', word: 'unwell' }) : statusBadge(row);
  return html`<span class="in-line">${word}<span>${isActive ? '' : 'last said: '}${nameInCell(said)}</span></span>`;
}

/** Each label leads to the nodes that have it. */
export function labelChips({ labels = {} }: CertificateRow): Html {
  return html`<span class="in-line">${labelTexts(labels).map(
    (label) =>
      html`<a class="chip" href="./nodes?${new URLSearchParams({ label }).toString()}">${nameInCell(label)}</a>`,
  )}</span>`;
}
