/** GenesisBlock: the network's trust root, signed by the root key [core-5-3]. */
import Type, { type Static } from 'typebox';
import type { Sha256, VerifySignature } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { Datetime, nullable, recordReader, Signatures } from './record.ts';
import { signedText } from './signed-record.ts';

export const GenesisBlock = Type.Object({
  network_name: Type.String({ minLength: 1 }),
  network_version: Type.String(),
  root_public_key: Type.String(),
  network_authority: Type.Object({
    public_key: Type.String(),
    valid_from: Datetime,
    valid_to: Datetime,
  }),
  allowed_crypto_suites: Type.Array(Type.String(), { default: ['ed25519', 'x25519'] }),
  allowed_transports: Type.Array(Type.String(), { default: ['quic', 'wireguard'] }),
  policy_manifest: Type.Object({
    hash: Type.String(),
    url: nullable(Type.String()),
  }),
  bootstrap_anchors: Type.Array(Type.Object({ id: Type.String(), endpoint: Type.String() }), {
    default: [],
  }),
  signatures: Signatures,
});

export type GenesisBlock = Static<typeof GenesisBlock>;

export const readGenesisBlock = recordReader(GenesisBlock);

/** Nodes require at least one signature and that all of them verify under the root key. */
export function isSignedByRoot(genesis: GenesisBlock, verify: VerifySignature): boolean {
  const text = signedText(genesis);
  return (
    genesis.signatures.length > 0 &&
    genesis.signatures.every(({ sig }) => verify(genesis.root_public_key, text, sig))
  );
}

/** Hex SHA-256 of the whole block, as used in bulletins [core-5-14]. */
export function genesisDigest(genesis: GenesisBlock, sha256: Sha256): string {
  return sha256.hex(canonicalJson(genesis));
}
