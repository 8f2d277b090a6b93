/**
 * Reads the recognition graph of a published Connectome document, in slices: parsing the rows of thousands of
 * treaties at once would hold up everything else on the thread.
 */
import { parseJson } from '../base/json/parse.ts';
import type { GraphDocument } from './graph-model.ts';
import { readRows } from './json-rows.ts';

/** What is between the members of the document, whose text is canonical. */
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
 * The whole treaties come first and are most of the text, but no page shows them. Nothing after them has
 * members of free form, and the quotes inside a string would be escaped.
 */
function copyOfGraph({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  const text = Buffer.from(buffer, byteOffset, byteLength);
  // The bytes of a document may be overwritten after this turn.
  return Buffer.from(text.subarray(text.lastIndexOf(EDGES)));
}
