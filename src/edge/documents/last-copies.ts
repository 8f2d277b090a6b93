/** What a standby answers while nobody is active: the signed documents that it has passed on [link-6]. */
import Value from 'typebox/value';
import { jsonText } from '../../base/json/write.ts';
import {
  documentText,
  ownDocument,
  type PublishedDocument,
} from '../../protocol/contract/documents.ts';
import { GenesisBlock } from '../../protocol/records/genesis.ts';
import type { CopyRequest, Edge } from '../edge.ts';
import { type Reply, staleDocumentReply } from '../reply.ts';
import { sovereignMetadata } from './documents.ts';

/** The path of the copy that answers each path. */
const COPIES: ReadonlyMap<string, string> = new Map([
  ['/crl', '/crl'],
  ['/policy', '/policy'],
  ['/sovereign-revocation-feed', '/sovereign-revocation-feed'],
  ['/genesis', '/genesis'],
  // The answer that was passed on contains the URL of a client, which must not be shown to another.
  ['/sovereign.json', '/genesis'],
]);

/** Null if this request has no last copy, or if an instance may be active. */
export function lastCopyReply(
  { instanceStatus, forwarder }: Pick<Edge, 'instanceStatus' | 'forwarder'>,
  request: CopyRequest,
): Reply | Promise<Reply> | null {
  const { path, method, rawQuery, baseUrl } = request;
  if (instanceStatus?.isVacant() !== true || method !== 'GET' || rawQuery !== '') return null;
  const copy = forwarder?.copies.get(COPIES.get(path) ?? '');
  if (copy === undefined) return null;
  const shown = path === copy.path ? copy.document : metadataIn(copy.document, baseUrl);
  // In whole seconds, and never too late.
  const since = Math.floor(copy.since / 1000) * 1000;
  return shown && staleDocumentReply(shown, since, request);
}

function metadataIn(genesis: PublishedDocument, baseUrl: string): PublishedDocument | null {
  const value: unknown = JSON.parse(documentText(genesis));
  if (!Value.Check(GenesisBlock, value)) return null;
  return ownDocument(jsonText(sovereignMetadata(value, baseUrl)));
}
