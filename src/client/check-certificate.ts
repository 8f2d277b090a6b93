import { canonicalJson } from '../json/write.ts';
import type { GenesisBlock } from '../records/genesis.ts';
import type { JoinCertificate } from '../records/join-certificate.ts';
import { verifyText } from './keys.ts';

/** Why a node must not use the certificate it was handed; null when it may [core-5-2]. */
export function certificateProblem(
  certificate: JoinCertificate,
  { publicKey, genesis }: { readonly publicKey: string; readonly genesis: GenesisBlock },
): string | null {
  if (certificate.node_public_key !== publicKey) return 'it is for another key';
  if (certificate.network_name !== genesis.network_name) return 'it names another network';
  const text = canonicalJson(certificate, 'signatures');
  const signed = certificate.signatures.some(({ sig }) =>
    verifyText(genesis.network_authority.public_key, text, sig),
  );
  return signed ? null : 'no signature verifies under the key of the genesis';
}
