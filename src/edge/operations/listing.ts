/**
 * Long lists. A client may request pages with `limit` and `cursor`; otherwise the entire list is sent, read from the
 * authority a page at a time at the client's pace. Rows that change meanwhile are sent in their new state, and rows
 * added at the end are included.
 */

import { MOST_ROWS } from '../../protocol/api/define.ts';
import { type Input, refused } from '../../protocol/api/read.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import type { ListPlace, PageRequest } from '../../protocol/contract/inputs.ts';
import { Refusal } from '../../protocol/refusals.ts';
import { answerReply, jsonReply, piecewiseReply, type Reply } from '../reply.ts';
import { firstValue, type Query } from '../request/parse.ts';
import type { Client, RouteRequest } from '../request/route.ts';

const ROWS_PER_PIECE = 250;
/** A requested page ends early instead of growing beyond this. */
const MOST_PAGE_CHARACTERS = 1024 * 1024;
/** A requested page ends early after this many pieces, about 40,000 rows, even if none passed the filter. */
const MOST_PIECES = 20;

export interface Listing {
  /** The member that has the rows. */
  readonly member: string;
  /** Whether the answer has a count. */
  readonly isCounted: boolean;
  /** Additional members, as JSON text that ends with a comma. */
  readonly before?: string;
  /** A refusal of the query is passed on, so that it is answered only after the caller is admitted. */
  page(request: Input<PageRequest>): Answer | Promise<Answer>;
}

interface Page {
  readonly next: ListPlace | null;
  readonly count: number;
  /** JSON text of the rows, joined by commas. */
  readonly rows: string;
}

export async function listReply(
  listing: Listing,
  { query, client }: Pick<RouteRequest, 'query' | 'client'>,
): Promise<Reply> {
  const limit = limitOf(query);
  const after = placeOf(query);
  const first = await listing.page(firstPage(limit, after));
  if (!first.ok) return answerReply(first);
  const page = pageIn(first.json);
  if (typeof limit === 'number') return pageReply(listing, page, limit, client);
  return page.next === null
    ? jsonReply(200, wholeText(listing, page))
    : piecewiseReply(restOf(listing, page));
}

function firstPage(
  limit: number | null | 'invalid',
  after: ListPlace | null | 'invalid',
): Input<PageRequest> {
  if (limit === 'invalid') return refused('invalid_limit');
  if (after === 'invalid') return refused('invalid_cursor');
  return { ok: true, value: { after, limit: limit ?? ROWS_PER_PIECE } };
}

/** A page of a public list. */
export function openPage(
  read: (request: PageRequest) => Answer | Promise<Answer>,
): Listing['page'] {
  return (request) => (request.ok ? read(request.value) : request);
}

function wholeText({ member, isCounted, before = '' }: Listing, page: Page): string {
  const count = isCounted ? `"count":${page.count},` : '';
  return `{${count}${before}"${member}":[${page.rows}]}`;
}

/** One page of a list for an HTML page; an invalid cursor yields the first page. */
export async function listedRows(
  listing: Pick<Listing, 'page'>,
  { query, client }: Pick<RouteRequest, 'query' | 'client'>,
  limit: number,
): Promise<{ readonly rows: readonly unknown[]; readonly cursor: string | null }> {
  const after = placeOf(query);
  const first = await pageAfter(listing, after === 'invalid' ? null : after, limit);
  const { next, rows } = await filledPage(listing, first, limit, Number.POSITIVE_INFINITY, client);
  const cursor = next === null ? null : cursorOf(next);
  return { rows: JSON.parse(`[${rows}]`) as unknown[], cursor };
}

async function filledPage(
  listing: Pick<Listing, 'page'>,
  first: Page,
  limit: number,
  mostPieces: number,
  client: Client,
): Promise<Page> {
  let page = first;
  for (let pieces = 1; pieces < mostPieces && page.next !== null; pieces += 1) {
    if (page.count >= limit || page.rows.length >= MOST_PAGE_CHARACTERS) break;
    if (client.aborted) throw new Refusal('request_timeout');
    const { next, count, rows } = await pageAfter(listing, page.next, limit - page.count);
    page = { next, count: page.count + count, rows: joined(page.rows, rows) };
  }
  return page;
}

async function pageReply(
  listing: Listing,
  first: Page,
  limit: number,
  client: Client,
): Promise<Reply> {
  const page = await filledPage(listing, first, limit, MOST_PIECES, client);
  const text = wholeText(listing, page);
  if (page.next === null) return jsonReply(200, text);
  return jsonReply(
    200,
    `${text.slice(0, -1)},"next_cursor":${JSON.stringify(cursorOf(page.next))}}`,
  );
}

/** The number of rows is known only at the end, so the count comes last. */
async function* restOf(listing: Listing, first: Page): AsyncGenerator<string, void> {
  const { member, isCounted, before = '' } = listing;
  let { next, count } = first;
  yield `{${before}"${member}":[${first.rows}`;
  let hasRows = first.rows !== '';
  while (next !== null) {
    const page = await pageAfter(listing, next, ROWS_PER_PIECE);
    next = page.next;
    count += page.count;
    // Also an empty piece lets others have their turn.
    yield hasRows && page.rows !== '' ? `,${page.rows}` : page.rows;
    hasRows ||= page.rows !== '';
  }
  yield isCounted ? `],"count":${count}}` : ']}';
}

async function pageAfter(
  listing: Pick<Listing, 'page'>,
  after: ListPlace | null,
  limit: number,
): Promise<Page> {
  const answer = await listing.page({ ok: true, value: { after, limit } });
  if (!answer.ok) throw new Error(`The list cannot be read on: ${answer.refusal}`);
  return pageIn(answer.json);
}

const ROWS = ',"rows":[';

/** The rows are forwarded unchanged; only the text before them is parsed. */
function pageIn(json: string): Page {
  // Cannot match inside a string, where quotes are escaped.
  const end = json.indexOf(ROWS);
  const { next, count } = JSON.parse(`${json.slice(0, end)}}`) as {
    next: [number, string] | null;
    count: number;
  };
  const place = next === null ? null : { at: next[0], id: next[1] };
  return { next: place, count, rows: json.slice(end + ROWS.length, -2) };
}

function joined(rows: string, more: string): string {
  return rows === '' || more === '' ? rows + more : `${rows},${more}`;
}

function limitOf(query: Query): number | null | 'invalid' {
  const text = firstValue(query, 'limit');
  if (text === null) return null;
  const limit = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= MOST_ROWS ? limit : 'invalid';
}

function cursorOf({ at, id }: ListPlace): string {
  return Buffer.from(JSON.stringify([at, id])).toString('base64url');
}

function placeOf(query: Query): ListPlace | null | 'invalid' {
  const cursor = firstValue(query, 'cursor');
  if (cursor === null) return null;
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (!Array.isArray(place) || place.length !== 2) return 'invalid';
    const [at, id]: unknown[] = place;
    return typeof at === 'number' && typeof id === 'string' ? { at, id } : 'invalid';
  } catch {
    return 'invalid';
  }
}
