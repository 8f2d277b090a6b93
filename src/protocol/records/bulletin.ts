/**
 * Bulletin [core-5-14]: the newest versions of the authority's documents, the same for all nodes. A node compares it
 * with its own copies and fetches only what has changed.
 */
import Type, { type Static } from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { canonicalJson } from '../../base/json/write.ts';
import { Datetime, nullable, recordReader, SignatureItem } from './record.ts';

export const Bulletin = Type.Object({
  version: Type.Literal(1),
  network_name: Type.String(),
  issued_at: Datetime,
  crl_sequence: Type.Integer({ minimum: 0 }),
  crl_digest: Type.String({ description: 'The `entries_digest` of the list with that sequence' }),
  policy_id: nullable(Type.String({ description: 'Null until a policy is first read' })),
  genesis_digest: Type.String({ description: 'Hex SHA-256 of the canonical genesis block' }),
  log_size: Type.Integer({ minimum: 0, description: 'Entries of the audit log' }),
  authority_keys_digest: Type.Optional(
    Type.String({
      pattern: '^[0-9a-f]{64}$',
      description:
        'Hex SHA-256 of the succession statements of `/authority-keys`; absent while there are none; not signed',
    }),
  ),
  signature: SignatureItem,
});

export type Bulletin = Static<typeof Bulletin>;

export const readBulletin = recordReader(Bulletin);

/** Without `authority_keys_digest`: readers written before it drop the member and must still verify the signature. */
export function bulletinText({
  authority_keys_digest: _,
  ...signed
}: Omit<Bulletin, 'signature'>): string {
  return canonicalJson(signed, 'signature');
}

export function isBulletinOf(
  bulletin: Bulletin,
  networkName: string,
  authorityKey: string,
  verify: VerifySignature,
): boolean {
  const { network_name, signature } = bulletin;
  if (network_name !== networkName) return false;
  return verify(authorityKey, bulletinText(bulletin), signature.sig);
}
