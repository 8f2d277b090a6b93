/** A private key submitted as a public key must not be stored, audited or published [core-1-5-1]. */
import { decodeBase64 } from '../../base/crypto/base64.ts';
import { SEED_BYTES, signerFromSeed } from '../../base/crypto/ed25519.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';

/** The most keys checked in one call, because each check derives a key. */
const MOST_DERIVED = 256;

/** Refuses if any of the given keys is the private key of a public key known to this authority. */
export function refusePrivateKeys(na: Authority, keys: Iterable<string | null>): void {
  for (const key of [...new Set(keys)].slice(0, MOST_DERIVED)) {
    const seed = decodeBase64(key ?? '', SEED_BYTES);
    if (seed !== null && isKnown(na, signerFromSeed(seed).publicKey)) {
      throw new Refusal('private_key_given');
    }
  }
}

function isKnown(na: Authority, publicKey: string): boolean {
  return (
    publicKey === na.signer.publicKey ||
    publicKey === na.settings.genesis.root_public_key ||
    na.authorityKeys.chain().has(publicKey) ||
    na.operatorRegistry.isKnown(publicKey) ||
    na.certificates.ownedBy(publicKey).length > 0 ||
    na.revocations.isCompromised(publicKey)
  );
}
