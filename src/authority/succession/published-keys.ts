/** Publishes the keys of the authority and the genesis block in force [authority-keys-2]. */
import { SHA256 } from '../../base/crypto/digest.ts';
import { jsonText } from '../../base/json/write.ts';
import { publishedDocument } from '../../protocol/contract/documents.ts';
import {
  type AuthorityKeys,
  authorityKeysDigest,
  firstKey,
} from '../../protocol/records/authority-chain.ts';
import { type GenesisBlock, genesisDigest } from '../../protocol/records/genesis.ts';
import { committedChain, genesisInForce, type KeyChain } from '../derived/authority-keys.ts';
import type { Authority } from '../engine/authority.ts';

/** Publishes what is committed; returns the genesis block in force. */
export function publishAuthorityKeys({
  subjects,
  settings,
  publisher,
  bulletin,
  knownChains,
}: Pick<
  Authority,
  'subjects' | 'settings' | 'publisher' | 'bulletin' | 'knownChains'
>): GenesisBlock {
  const chain = committedChain({ subjects });
  publisher.publish(
    'authority_keys',
    publishedDocument(jsonText(documentOf(chain, settings.genesis))),
  );
  knownChains.publish(chain.published);
  const genesis = genesisInForce(chain, settings.genesis);
  publisher.publish('genesis', publishedDocument(jsonText(genesis)));
  const { published } = chain;
  const digest = published.length === 0 ? null : authorityKeysDigest(published, SHA256);
  bulletin.named(genesisDigest(genesis, SHA256), digest);
  return genesis;
}

function documentOf(
  chain: KeyChain,
  { network_name, root_public_key, network_authority }: Authority['settings']['genesis'],
): AuthorityKeys {
  const keys = chain.current === null ? [firstKey(network_authority.public_key)] : chain.keys;
  return { network_name, root_public_key, keys: [...keys], successions: [...chain.published] };
}
