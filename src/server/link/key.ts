/** The secret of the link: anyone who holds the key of the authority can make it, and nobody else. */
import { hkdfSync } from 'node:crypto';
import type { Signer } from '../../base/crypto/primitives.ts';

/** No record begins like this text, so the signature is of no use elsewhere. */
const LABEL = 'mesh-na link 1';
const KEY_BYTES = 32;

/** Ed25519 signatures are deterministic: every instance makes the same one. */
export function linkKey(signer: Signer, genesisDigest: string): Buffer {
  const signature = Buffer.from(signer.sign(`${LABEL}\n${genesisDigest}`), 'base64');
  return Buffer.from(hkdfSync('sha256', signature, genesisDigest, LABEL, KEY_BYTES));
}
