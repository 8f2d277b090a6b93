/**
 * Reads what pages show of published documents out of their bytes: parsing thousands of rows at once would block the
 * thread. The text of a document is canonical, so its members are found by their names.
 */
import { parseJson } from '../../base/json/parse.ts';
import type { Dashboard } from '../../protocol/rows/dashboard.ts';
import type { GraphDocument } from './model.ts';

/** Delimiters of the treaties of the dashboard; no member before them is free-form. */
const TREATIES = '"treaties":[';
const FEEDS = '],"revocation_feed_summary":';

/** The dashboard with its first treaties out of thousands. */
export function readDashboard(
  { buffer, byteOffset, byteLength }: Uint8Array,
  mostTreaties: number,
): Dashboard {
  const text = Buffer.from(buffer, byteOffset, byteLength);
  const start = text.indexOf(TREATIES) + TREATIES.length;
  const end = text.indexOf(FEEDS, start);
  const treaties = firstRows(text.subarray(start, end), mostTreaties);
  const json = text.toString('utf8', 0, start) + treaties + text.toString('utf8', end);
  return parseJson(json) as unknown as Dashboard;
}

/** Delimiters between members of the Connectome. */
const EDGES = '],"recognition_edges":[';
const BLAST_RADIUS = '],"revocation_blast_radius":[';
const MATERIAL = '],"revoked_trust_material":[';
const SOVEREIGNS = '],"sovereigns":[';
const SUMMARY = '],"summary":';

/** The recognition graph of the Connectome, in slices. */
export function* readGraph(document: Uint8Array): Generator<void, GraphDocument> {
  const text = copyOfGraph(document);
  let at = 0;
  function* rowsBetween<Row>(start: string, end: string): Generator<void, Row[]> {
    const from = at + start.length;
    at = text.indexOf(end, from);
    return yield* readRows<Row>(text.subarray(from, at));
  }
  return {
    recognition_edges: yield* rowsBetween(EDGES, BLAST_RADIUS),
    revocation_blast_radius: yield* rowsBetween(BLAST_RADIUS, MATERIAL),
    revoked_trust_material: yield* rowsBetween(MATERIAL, SOVEREIGNS),
    sovereigns: yield* rowsBetween(SOVEREIGNS, SUMMARY),
    summary: parseJson(
      text.toString('utf8', at + SUMMARY.length, text.length - 1),
    ) as GraphDocument['summary'],
  };
}

/**
 * The full treaties come first and make up most of the text, but no page shows them. Nothing after them has
 * free-form members, and quotes inside a string are escaped.
 */
function copyOfGraph({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  const text = Buffer.from(buffer, byteOffset, byteLength);
  // The buffer of a document may be reused after this turn of the event loop.
  return Buffer.from(text.subarray(text.lastIndexOf(EDGES)));
}

/** Parsing these takes a few milliseconds. */
const BYTES_PER_SLICE = 128 * 1024;

/** Parses the rows of a list, which contain no nested objects, in slices. `list` comes without its brackets. */
function* readRows<Row>(list: Buffer): Generator<void, Row[]> {
  const rows: Row[] = [];
  for (let at = 0; at < list.length; ) {
    const end = endOfRow(list, at + BYTES_PER_SLICE);
    for (const row of parseJson(`[${list.toString('utf8', at, end)}]`) as Row[]) rows.push(row);
    at = end + 1;
    if (at < list.length) yield;
  }
  return rows;
}

/** Returns the text of the first rows of a list. `list` comes without its brackets. */
function firstRows(list: Buffer, most: number): string {
  let end = 0;
  for (let count = 0; count < most && end < list.length; count += 1) end = endOfRow(list, end);
  return list.toString('utf8', 0, end);
}

const NEXT_ROW = '},{"';

/** Returns the end of the row that contains this offset or ends just before it. */
function endOfRow(list: Buffer, from: number): number {
  for (let at = list.indexOf(NEXT_ROW, from); at >= 0; at = list.indexOf(NEXT_ROW, at + 1)) {
    // Inside a string, these characters could only be followed by the closing quote, never by a quote and a letter.
    if (isLetter(list[at + NEXT_ROW.length])) return at + 1;
  }
  return list.length;
}

function isLetter(code = 0): boolean {
  return code >= 0x61 && code <= 0x7a;
}
