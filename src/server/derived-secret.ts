/** Secrets that all instances derive from a key of the authority without telling each other [link-2], [core-3-4]. */
import { hkdfSync } from 'node:crypto';
import Type from 'typebox';
import Value from 'typebox/value';
import { sha256Hex } from '../base/crypto/digest.ts';
import type { Signer } from '../base/crypto/primitives.ts';
import { canonicalJson } from '../base/json/write.ts';
import { documentText, type PublishedDocument } from '../protocol/contract/documents.ts';
import { type AuthorityKey, AuthorityKeys } from '../protocol/records/authority-chain.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';

const SECRET_BYTES = 32;

export function networkDigest({
  network_name,
  root_public_key,
}: Pick<GenesisBlock, 'network_name' | 'root_public_key'>): string {
  return sha256Hex(canonicalJson({ network_name, root_public_key }));
}

/**
 * Ed25519 signatures are deterministic, so every instance with the key derives the same secret. No record begins with a
 * label, so the signature is useless elsewhere.
 */
export function derivedSecret(key: Pick<Signer, 'sign'>, network: string, label: string): Buffer {
  const signature = Buffer.from(key.sign(`${label}\n${network}`), 'base64');
  return Buffer.from(hkdfSync('sha256', signature, network, label, SECRET_BYTES));
}

const Keys = Type.Pick(AuthorityKeys, ['keys']);

/** The keys in the published document, one of which the secrets derive from. */
export function keysIn(document: PublishedDocument): readonly AuthorityKey[] {
  const value: unknown = JSON.parse(documentText(document));
  return Value.Check(Keys, value) ? value.keys : [];
}
