/** Lists certificates for operators: all that are kept, in any status [core-4-17]. */

import { isPublicKey } from '../../base/crypto/public-key.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import type { InputOf } from '../../protocol/api/define.ts';
import type { Api } from '../../protocol/api/table.ts';
import { Refusal } from '../../protocol/refusals.ts';
import {
  type CertificateRow,
  type CertificateStatus,
  hasStatus,
  isInHealth,
  isInUse,
} from '../../protocol/rows/certificate.ts';
import { descriptionTest } from '../../protocol/rows/node-description.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { MOST_LOOKED_AT, pageFrom } from '../engine/page.ts';
import { descriptionRow, lengthOfDescription } from '../node-descriptions.ts';
import type { Subject } from '../subjects/kinds.ts';
import { beginningWith } from '../subjects/sorted-texts.ts';
import type { LastContact } from './last-contact.ts';

/** Approximate number of characters in a row, not counting its roles. */
const ROW_CHARACTERS = 600;

/** Null members and empty lists do not filter. */
type CertificateFilter = InputOf<Api['listCertificates']>;

interface Listed {
  readonly id: string;
  readonly certificate: Subject<'certificate'>;
  readonly contact: LastContact;
  readonly status: CertificateStatus;
}

/** Sorted by id alone, so that a certificate keeps its position when its status changes. */
export const listCertificates: Handler<'listCertificates'> = (
  na,
  { after, limit, ...filter },
  at,
) =>
  pageFrom(
    {
      placeOf: (id) => ({ at: 0, id }),
      found: certificateSearch(na, filter, at),
      row: (found) => rowOf(na, found),
      lengthOf: (found) => lengthOf(na, found),
    },
    idsAfter(na, after?.id ?? '', filter, at),
    limit,
  );

/** Returns the certificate with an id; null if it does not pass the filter. */
export function certificateSearch(
  na: Authority,
  filter: CertificateFilter,
  at: number,
): (id: string) => Listed | null {
  const mayPass = cheapTest(na, filter);
  return (id) => {
    const certificate = mayPass(id) ? listed(na, id, at) : null;
    return certificate !== null && passes(certificate, filter) ? certificate : null;
  };
}

/**
 * What can be tested without reading the whole certificate, which takes most of the time of a search: of a million
 * certificates, few pass one of these filters.
 */
function cheapTest(na: Authority, filter: CertificateFilter): (id: string) => boolean {
  const { certificates, liveness } = na;
  const { silent_since: silentSince, health } = filter;
  const isWanted = descriptionTest(filter);
  return (id) =>
    (silentSince === null || liveness.lastSeen(id) < silentSince) &&
    (health === null || isInHealth(liveness.statusOf(id), health)) &&
    (isWanted === null || isWanted(certificates.descriptionOf(id)));
}

export const readCertificate: Handler<'readCertificate'> = (na, { cert_id: certId }, at) => {
  const found = listed(na, certId, at);
  if (found === null) throw new Refusal('certificate_not_found');
  return rowOf(na, found);
};

function idsAfter(
  na: Authority,
  id: string,
  filter: CertificateFilter,
  at: number,
): Iterable<string> {
  const { key, cert_id: beginning } = filter;
  const few =
    key !== null && isPublicKey(key) ? na.certificates.ownedBy(key) : fewFor(na, filter, at);
  if (few === null) return beginningWith(beginning ?? '', na.certificateIds, id);
  return few.filter((each) => each > id).sort();
}

/**
 * What operators look for in a large network is rare, and found without looking at the rest. Where it is not rare, the
 * list comes to it soon: ids are random.
 */
function fewFor(
  { liveness, subjects }: Authority,
  { status, health }: CertificateFilter,
  at: number,
): string[] | null {
  const isOver = (id: string) =>
    (subjects.committed('certificate', id)?.context.expiresAt ?? 0) <= at;
  const silent = status === 'silent' ? liveness.quietIds(at, MOST_LOOKED_AT, isOver) : null;
  return silent ?? (health === 'unwell' ? liveness.unwellIds(MOST_LOOKED_AT) : null);
}

/** Null if the certificate is not on disk. */
function listed(na: Authority, id: string, at: number): Listed | null {
  const certificate = na.subjects.committed('certificate', id);
  if (certificate === undefined) return null;
  const contact = na.liveness.contactOf(id, at);
  return { id, certificate, contact, status: statusOf(certificate, contact, at) };
}

function statusOf(
  { value, context }: Subject<'certificate'>,
  { isActive }: LastContact,
  at: number,
): CertificateStatus {
  const { expiresAt, supersededFrom, renewedAt } = context;
  if (value === 'revoked') return 'revoked';
  if (expiresAt <= at) return 'expired';
  if (supersededFrom !== null && supersededFrom <= at) return 'superseded';
  if (isActive) return 'active';
  return renewedAt === null ? 'silent' : 'renewed';
}

/** The filters that `cheapTest` leaves. */
function passes({ id, certificate, contact, status }: Listed, filter: CertificateFilter): boolean {
  const { nodePublicKey, roles, expiresAt } = certificate.context;
  return (
    (filter.status === null || hasStatus(status, filter.status)) &&
    (filter.role.length === 0 || filter.role.some((role) => roles.includes(role))) &&
    (filter.expires_before === null || expiresAt < filter.expires_before) &&
    (filter.key === null || nodePublicKey.startsWith(filter.key)) &&
    (filter.cert_id === null || id.startsWith(filter.cert_id)) &&
    (filter.remote_addr === null || contact.remoteAddr.startsWith(filter.remote_addr)) &&
    (filter.silent_since === null || isInUse(status))
  );
}

function lengthOf(na: Authority, { id, certificate }: Listed): number {
  const described = lengthOfDescription(na.certificates.descriptionOf(id));
  return ROW_CHARACTERS + certificate.context.roles.join().length + described;
}

function rowOf(na: Authority, { id, certificate, contact, status }: Listed): CertificateRow {
  const { context } = certificate;
  return {
    cert_id: id,
    node_public_key: context.nodePublicKey,
    ...descriptionRow(na.certificates.descriptionOf(id)),
    roles: [...context.roles],
    status,
    last_contact: formatInstant(contact.lastSeen),
    node_status: contact.status,
    remote_addr: contact.remoteAddr,
    issued_at: formatInstant(context.issuedAt),
    expires_at: formatInstant(context.expiresAt),
    renewed_from: context.renewedFrom,
    superseded_from: formatInstantIfAny(context.supersededFrom),
    revoked_at: formatInstantIfAny(context.revokedAt),
    revocation_reason: context.revocationReason,
  };
}
