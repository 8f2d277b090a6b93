/** The public keys of operators known to an edge: those that the authority has published. */
import { documentText } from '../protocol/contract/documents.ts';
import type { DocumentCache } from '../protocol/contract/publications.ts';
import type { Edge } from './edge.ts';

/** Key id to base64 public key; only the configured keys until the authority has published all keys. */
export function publishedKeys(
  configured: Iterable<readonly [string, string]>,
  documents: DocumentCache,
): ReadonlyMap<string, string> {
  const keys = new Map(configured);
  documents.follow((name, document) => {
    if (name !== 'operator_keys') return;
    keys.clear();
    for (const [id, key] of JSON.parse(documentText(document)) as [string, string][]) {
      keys.set(id, key);
    }
  });
  return keys;
}

/** Whether the key is unknown here but may have been published and not have arrived yet. */
export function isBeingPublished(
  { settings, documents, instanceStatus }: Edge,
  keyId: string,
): boolean {
  if (settings.operatorAuth.keys.has(keyId)) return false;
  if (instanceStatus !== null) return true;
  const isOutdated = documents.get('operator_keys') === undefined;
  return isOutdated && documents.latest('operator_keys') !== undefined;
}
