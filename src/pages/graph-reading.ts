/**
 * Reads the recognition graph of a published Connectome document in slices: parsing thousands of rows at once would
 * block the thread.
 */
import { parseJson } from '../base/json/parse.ts';
import type { GraphDocument } from './graph-model.ts';
import { readRows } from './json-rows.ts';

/** Delimiters between members of the document, whose text is canonical. */
const EDGES = '],"recognition_edges":[';
const BLAST_RADIUS = '],"revocation_blast_radius":[';
const MATERIAL = '],"revoked_trust_material":[';
const SOVEREIGNS = '],"sovereigns":[';
const SUMMARY = '],"summary":';

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
