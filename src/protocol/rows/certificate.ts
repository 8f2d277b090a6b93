/** A node's certificate as operators see it [core-4-17]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';

/** What has become of a certificate; the first that applies, from the last. */
export const CERTIFICATE_STATUSES = [
  /** Accepted, and heard of within the active-node window. */
  'active',
  /** Accepted, but not heard of within the window. */
  'silent',
  /** Accepted, but not heard of since its successor was issued. */
  'renewed',
  'superseded',
  'expired',
  'revoked',
] as const;

export const CertificateRow = Type.Object({
  cert_id: Type.String(),
  node_public_key: Type.String(),
  roles: Type.Array(Type.String()),
  status: Type.Enum([...CERTIFICATE_STATUSES]),
  /** When the node was last heard of: join, renewal or heartbeat. */
  last_contact: Datetime,
  /** What the node said of itself then: any text. */
  node_status: Type.String(),
  remote_addr: Type.String(),
  issued_at: Datetime,
  expires_at: Datetime,
  renewed_from: Type.Union([Type.String(), Type.Null()]),
  superseded_from: Type.Union([Datetime, Type.Null()]),
  revoked_at: Type.Union([Datetime, Type.Null()]),
  revocation_reason: Type.Union([Type.String(), Type.Null()]),
});

export type CertificateRow = Static<typeof CertificateRow>;
export type CertificateStatus = CertificateRow['status'];
