/** The keys of the authority and of operators, and the genesis block, as an edge knows them: as the authority has published them. */
import {
  type DocumentCache,
  documentText,
  type PublishedDocument,
} from '../../protocol/contract/documents.ts';
import type { AuthorityKeys } from '../../protocol/records/authority-chain.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';

export interface KnownAuthorityKeys {
  readonly genesis: GenesisBlock;
  /** Base64. */
  readonly current: string;
  /** Since when it is in force; null for the first one. */
  readonly since: string | null;
  /** The keys that a request may be signed for: the current one, the one that it replaced, and the next [authority-keys-10]. */
  readonly audiences: readonly string[];
  /** The keys whose signatures count: never one that was stolen. */
  readonly trusted: readonly string[];
  /** Whether another key was the authority's before. */
  readonly isSuccessor: boolean;
}

/** Those of the configuration until the authority has published; the members follow what it publishes. */
export function publishedAuthorityKeys(
  genesis: GenesisBlock,
  current: string,
  documents: DocumentCache,
): KnownAuthorityKeys {
  const known = {
    genesis,
    current,
    since: null as string | null,
    audiences: [current],
    trusted: [current],
    isSuccessor: false,
  };

  function use(name: string, document: PublishedDocument): void {
    if (name === 'genesis') known.genesis = JSON.parse(documentText(document)) as GenesisBlock;
    if (name !== 'authority_keys') return;
    const { keys, successions } = JSON.parse(documentText(document)) as AuthorityKeys;
    const found = keys.find(({ state }) => state === 'current');
    const key = found?.public_key ?? current;
    const replaced = successions.findLast(({ to_key }) => to_key === key)?.from_key;
    const next = keys.find(({ state }) => state === 'next')?.public_key;
    known.current = key;
    known.since = found?.since ?? null;
    known.audiences = [key, replaced, next].filter((each) => each !== undefined);
    const earlier = keys.filter(({ state }) => state === 'previous' || state === 'retired');
    // The newest first, because a search tries at most 32.
    known.trusted = [key, ...earlier.map(({ public_key }) => public_key).reverse()];
    known.isSuccessor = keys[0]?.public_key !== key;
  }

  documents.follow(use);
  return known;
}

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
