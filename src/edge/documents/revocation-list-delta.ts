/**
 * The entries added to the revocation list since an earlier version [core-5-5-1]. Any delta can be built locally: the
 * added entries are the end of the published list, and the signed part is the same for every earlier version.
 */

import {
  documentText,
  endOf,
  entriesIn,
  KEPT_REVISIONS,
  type PublishedDocument,
} from '../../protocol/contract/documents.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Edge } from '../edge.ts';
import { lastingBytes } from '../http/send-reply.ts';
import { documentReply, piecewiseReply, type Reply } from '../reply.ts';
import type { RouteRequest } from '../request/route.ts';
import { cachedBySource } from './shared-build.ts';

/**
 * Longer deltas are neither cached nor compressed, and are sent from the one shared copy of the list, so that slow
 * clients with many different deltas occupy no memory.
 */
const MOST_KEPT_BYTES = 32 * 1024;

/** A fleet requests only a few different deltas, because its nodes have recent versions. */
const MOST_KEPT = 64;

/** The local copy of the list must be current. */
export function deltaReply(
  since: number,
  request: RouteRequest,
  { documents, revisionEnds }: Edge,
): Reply | Promise<Reply> {
  const list = documents.latest('crl');
  const published = documents.latest('crl_revision');
  if (list === undefined || published === undefined) throw new Refusal('service_not_ready');
  const revision = revisionIn(published);
  const { sequence, kept } = revision;
  if (since > sequence) throw new Refusal('since_ahead', { sequence });
  if (since < sequence - KEPT_REVISIONS) throw new Refusal('delta_unavailable', { sequence });
  const known = kept.get(since);
  if (known !== undefined) return documentReply(known, request);
  const from = endOf(revisionEnds, since);
  const to = endOf(revisionEnds, sequence);
  if (to - from > MOST_KEPT_BYTES) {
    const added = addedSince(from, to, lastingBytes(list.bytes));
    return piecewiseReply(deltaInPieces(since, added, revision));
  }
  const delta = deltaOf(since, addedSince(from, to, list.bytes), revision, list);
  if (kept.size < MOST_KEPT) kept.set(since, delta);
  return documentReply(delta, request);
}

/** The entries between two ends, without the comma before them. */
function addedSince(from: number, to: number, bytes: Uint8Array): Buffer {
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const first = entriesIn(list)?.from ?? 0;
  const isAfterOthers = from > 0 && to > from;
  return list.subarray(first + from + (isAfterOthers ? 1 : 0), first + to);
}

/** A copy: the bytes of the list may be overwritten by a later version. */
function deltaOf(
  since: number,
  added: Buffer,
  revision: RevisionParts,
  { freshUntil }: PublishedDocument,
): PublishedDocument {
  const bytes = Buffer.concat([
    Buffer.from(BEFORE_ADDED),
    added,
    Buffer.from(afterAdded(since, revision)),
  ]);
  return { bytes, etag: `"${since}-${revision.etag}"`, freshUntil };
}

const PIECE_BYTES = 64 * 1024;

async function* deltaInPieces(
  since: number,
  added: Buffer,
  revision: RevisionParts,
): AsyncGenerator<string, void> {
  yield BEFORE_ADDED;
  for (let sent = 0; sent < added.length; sent += PIECE_BYTES) {
    // Canonical JSON is ASCII.
    yield added.toString('latin1', sent, sent + PIECE_BYTES);
  }
  yield afterAdded(since, revision);
}

const BEFORE_ADDED = '{"added":[';

function afterAdded(since: number, { upToUpdate, rest }: RevisionParts): string {
  return `],"base_sequence":${since},${upToUpdate},"removed":[],${rest}`;
}

interface RevisionParts {
  readonly sequence: number;
  /** The canonical text before and after the place of `removed` in a delta. */
  readonly upToUpdate: string;
  readonly rest: string;
  readonly etag: string;
  /** Cached deltas to this version, by the earlier version. */
  readonly kept: Map<number, PublishedDocument>;
}

const revisionIn = cachedBySource((published: PublishedDocument): RevisionParts => {
  const text = documentText(published);
  const place = text.lastIndexOf(',"sequence":');
  return {
    sequence: (JSON.parse(text) as { readonly sequence: number }).sequence,
    upToUpdate: text.slice(1, place),
    rest: text.slice(place + 1),
    etag: published.etag.slice(1, -1),
    kept: new Map(),
  };
});
