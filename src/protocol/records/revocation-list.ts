/** CertificateRevocationList [core-5-5]. Nodes verify its first two signatures only. */
import Type, { type Static } from 'typebox';
import { Datetime, recordReader, Signatures } from './record.ts';

export const REVOCATION_REASONS = [
  'key_compromise',
  'cessation_of_operation',
  'superseded',
  'unspecified',
] as const;

export type RevocationReason = (typeof REVOCATION_REASONS)[number];

export const RevokedCertificate = Type.Object({
  certificate_id: Type.String(),
  revoked_at: Datetime,
  reason: Type.String(),
  issuer: Type.String(),
});

export const CertificateRevocationList = Type.Object({
  crl_id: Type.String(),
  sequence: Type.Integer(),
  issued_at: Datetime,
  next_update: Datetime,
  issuer: Type.String(),
  revoked_certificates: Type.Array(RevokedCertificate, { default: [] }),
  signatures: Signatures,
});

export type RevokedCertificate = Static<typeof RevokedCertificate>;
export type CertificateRevocationList = Static<typeof CertificateRevocationList>;

export const readCertificateRevocationList = recordReader(CertificateRevocationList);
