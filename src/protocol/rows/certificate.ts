/** A node's certificate as operators see it [core-4-17]. */
import Type, { type Static } from 'typebox';
import { Datetime } from '../records/record.ts';
import { DescriptionMembers } from './node-description.ts';

/** The status of a certificate: the last in this list that applies. */
export const CERTIFICATE_STATUSES = [
  /** Accepted, and in contact within the active-node window. */
  'active',
  /** Accepted, but without contact within the window. */
  'silent',
  /** Accepted, but without contact since its successor was issued. */
  'renewed',
  'superseded',
  'expired',
  'revoked',
] as const;

export const CertificateRow = Type.Object({
  cert_id: Type.String(),
  node_public_key: Type.String(),
  ...DescriptionMembers,
  roles: Type.Array(Type.String()),
  status: Type.Enum([...CERTIFICATE_STATUSES]),
  /** The last contact of the node: join, renewal or heartbeat. */
  last_contact: Datetime,
  /** The status that the node reported then: any text. */
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

/** What a list can be limited to. */
export const CERTIFICATE_STATUS_FILTERS = [...CERTIFICATE_STATUSES, 'in_use'] as const;
export type CertificateStatusFilter = (typeof CERTIFICATE_STATUS_FILTERS)[number];

/** Only nodes with these may still report: after a renewal, the new certificate reports instead. */
export function isInUse(status: CertificateStatus): boolean {
  return status === 'active' || status === 'silent';
}

/** Whether the network accepts a certificate with this status. */
export function isAccepted(status: CertificateStatus): boolean {
  return isInUse(status) || status === 'renewed';
}

export function hasStatus(status: CertificateStatus, wanted: CertificateStatusFilter): boolean {
  return wanted === 'in_use' ? isInUse(status) : status === wanted;
}
