import { sha256Hex } from '../../base/crypto/digest.ts';

/** Documents derived from the recognition graph, which become stale together. */
export const GRAPH_DOCUMENTS = ['recognition_graph', 'connectome', 'atlas'] as const;

export const DOCUMENT_NAMES = [
  'genesis',
  'authority_keys',
  'policy',
  'crl',
  /** The signed part of the newest version of the revocation list, for clients that have an earlier version. */
  'crl_revision',
  'bulletin',
  'sovereign_revocation_feed',
  'dashboard',
  'data_license_policy',
  /** Only for the edges; no route serves it. */
  'operator_keys',
  ...GRAPH_DOCUMENTS,
] as const;

export type DocumentName = (typeof DOCUMENT_NAMES)[number];

/** The revocation feed that this authority signs in the name of another issuer. */
export type ForeignFeedName = `revocation_feed_of:${string}`;
export type PublishedName = DocumentName | ForeignFeedName;

export function foreignFeedName(issuer: string): ForeignFeedName {
  return `revocation_feed_of:${issuer}`;
}

/** A public document as the edge serves it: its bytes and a strong validator. */
export interface PublishedDocument {
  /**
   * The bytes of published documents are in shared memory, so that every edge serves the same ones. They may be
   * overwritten once a newer version has reached every edge, so copy them if they are needed beyond the current turn.
   */
  readonly bytes: Uint8Array;
  readonly etag: string;
  /** When a new version must be requested, in milliseconds since the epoch. */
  readonly freshUntil: number;
}

/** The text of a document. */
export function documentText({ bytes }: PublishedDocument): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}

export function publishedDocument(json: string, freshUntil = Number.MAX_VALUE): PublishedDocument {
  const shared = new SharedArrayBuffer(Buffer.byteLength(json));
  const bytes = Buffer.from(shared);
  bytes.write(json);
  return { bytes, etag: etagOf(bytes), freshUntil };
}

/** A document of a single thread. V8 does not account for shared memory, so data created per request is never in it. */
export function ownDocument(json: string): PublishedDocument {
  const bytes = Buffer.from(json);
  return { bytes, etag: etagOf(bytes), freshUntil: Number.MAX_VALUE };
}

export function etagOf(content: string | Uint8Array): string {
  return `"${sha256Hex(content).slice(0, 32)}"`;
}

/** The validator without its quotes, as live pages name it. */
export function versionOf(etag: string): string {
  return etag.slice(1, -1);
}

/** A document received from another instance. */
export function receivedDocument(
  bytes: Uint8Array,
  etag: string,
  freshUntil: number,
): PublishedDocument {
  const copy = Buffer.from(new SharedArrayBuffer(bytes.byteLength));
  copy.set(bytes);
  return { bytes: copy, etag, freshUntil };
}

/** How many bytes to allocate for a growing document: an eighth more than needed, so that it rarely has to be moved. */
export function withHeadroom(needed: number): number {
  return needed + Math.max(65_536, needed >> 3);
}
