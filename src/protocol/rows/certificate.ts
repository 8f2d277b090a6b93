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
  /** Silent, and a successor was issued. */
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

/** The statuses of nodes that have not reported yet. */
export const NOT_REPORTED: ReadonlySet<string> = new Set(['joined', 'renewed']);

/** First words of a report that count as healthy; nodes choose the text of their reports. */
const WELL = new Set([
  ...['healthy', 'ok', 'okay', 'good', 'fine', 'well', 'up', 'ready', 'running', 'active'],
  ...['online', 'alive', 'idle', 'busy', 'serving', 'normal', 'unknown', ''],
  ...NOT_REPORTED,
]);

/** Whether a node has fallen silent; one that has only joined has never been heard, and no count has it [core-6-5]. */
export function isSilentNode(row: { readonly status: string; readonly node_status: string }) {
  return row.status === 'silent' && row.node_status !== 'joined';
}

/** The first word, or nothing at all. */
const REPORT = /^\s*(?:([a-z]+)(?!\p{L})|$)/iu;

/** Whether a node that reports this text is healthy; anything not known to be good counts as bad. */
export function reportsHealth(status: string): boolean {
  const report = REPORT.exec(status);
  return report !== null && WELL.has(report[1]?.toLowerCase() ?? '');
}

/** Whether the report is the wanted one; `well` stands for every report that is healthy, `unwell` for the others. */
export function isInHealth(status: string, wanted: string): boolean {
  if (wanted === 'well') return reportsHealth(status);
  return wanted === 'unwell' ? !reportsHealth(status) : status === wanted;
}

/** When nodes were last heard from, counted [core-4-23]. */

export const ContactCounts = Type.Object({
  count: Type.Integer({ description: 'The sum of the five counts after it' }),
  active: Type.Integer(),
  silent_under_hour: Type.Integer(),
  silent_under_day: Type.Integer({ description: 'For an hour or longer' }),
  silent_under_week: Type.Integer({ description: 'For a day or longer' }),
  silent_longer: Type.Integer({ description: 'For a week or longer' }),
  silent_since: Type.Union([Datetime, Type.Null()], {
    description: 'The last contact of the one that has been silent the longest',
  }),
});

export const BIN_KINDS = ['label', 'name', 'hostname', 'remote_addr'] as const;

export const ContactBin = Type.Object({
  by: Type.Enum([...BIN_KINDS], {
    description: 'The filter of GET /admin/certificates that finds the certificates of the bin',
  }),
  value: Type.String({ description: 'The value of that filter' }),
  ...ContactCounts.properties,
});

export const Contacts = Type.Object({
  as_of: Datetime,
  total: ContactCounts,
  bins: Type.Array(ContactBin),
  unlabeled: Type.Union([ContactCounts, Type.Null()], {
    description: 'Those without the label; null if there are none, or no label was asked for',
  }),
  other: Type.Union([ContactCounts, Type.Null()], {
    description: 'Those with values of the label beyond the first 1,000; null if there are none',
  }),
});

export type ContactCounts = Static<typeof ContactCounts>;
export type ContactBin = Static<typeof ContactBin>;
export type Contacts = Static<typeof Contacts>;
