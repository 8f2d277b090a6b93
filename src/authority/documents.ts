import { sha256Hex } from '../crypto/digest.ts';

/** Derived from the recognition graph, and stale together. */
export const GRAPH_DOCUMENTS = ['recognition_graph', 'connectome', 'atlas'] as const;

export type DocumentName =
  | 'genesis'
  | 'policy'
  | 'crl'
  | 'sovereign_revocation_feed'
  | 'dashboard'
  | 'data_license_policy'
  | (typeof GRAPH_DOCUMENTS)[number];

/** A public document as the edge serves it: the very bytes, and a strong validator over them. */
export interface PublishedDocument {
  readonly bytes: Buffer;
  readonly etag: string;
  /** Milliseconds since the epoch from which a new version must be asked for. */
  readonly freshUntil: number;
}

export function publishedDocument(json: string, freshUntil = Number.MAX_VALUE): PublishedDocument {
  const bytes = Buffer.from(json, 'utf8');
  return { bytes, etag: `"${sha256Hex(bytes).slice(0, 32)}"`, freshUntil };
}
