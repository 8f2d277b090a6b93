/** The first policy of a network [core-5-4-1], derived from the genesis block, which contains its digest. */
import type { Sha256 } from '../../base/crypto/primitives.ts';
import type { GenesisBlock } from './genesis.ts';
import { type PolicyManifest, readPolicyManifest } from './policy-manifest.ts';
import { signedText } from './signed-record.ts';

export const MIN_CLIENT_VERSION = '0.1.0';

type Founding = Pick<GenesisBlock, 'network_name' | 'network_version' | 'network_authority'>;

export function defaultPolicyId(name: string, version: string): string {
  return `policy-${name}-${version}`;
}

/** The policy, not yet signed. */
export function firstPolicy(genesis: Founding): PolicyManifest {
  const { network_name, network_version, network_authority } = genesis;
  const policy = readPolicyManifest({
    policy_id: defaultPolicyId(network_name, network_version),
    issued_at: network_authority.valid_from,
    issued_by: network_authority.public_key,
    min_client_version: MIN_CLIENT_VERSION,
  });
  if (policy === null) throw new Error('The first policy is not a PolicyManifest');
  return policy;
}

export function firstPolicyHash(genesis: Founding, sha256: Sha256): string {
  return `sha256:${sha256.hex(signedText(firstPolicy(genesis)))}`;
}

/** Null if the genesis block does not contain the digest of the policy; blocks of earlier versions have none. */
export function namedFirstPolicy(genesis: GenesisBlock, sha256: Sha256): PolicyManifest | null {
  const isNamed = genesis.policy_manifest.hash === firstPolicyHash(genesis, sha256);
  return isNamed ? firstPolicy(genesis) : null;
}
