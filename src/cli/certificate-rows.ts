/** Certificates as commands choose and show them: what those about certificates and about nodes share. */
import { type Command, Option } from 'commander';
import { reportsHealth } from '../authority/views/posture.ts';
import { parseRequestTimestamp } from '../base/timestamp.ts';
import type { OperatorClient } from '../client/operator-client.ts';
import type { CertificateRow, CertificateStatus } from '../protocol/rows/certificate.ts';
import { eachOf, pagesOf } from './listing.ts';
import { timeAgo, timeAhead } from './options.ts';
import { wholeId, wholeKey } from './short-id.ts';
import { type Column, column, idColumn, timeColumn } from './table.ts';

export interface NodeFilter {
  readonly role?: string;
  readonly health?: string;
  readonly silentSince?: string;
}

export interface CertificateFilter extends NodeFilter {
  readonly status?: CertificateStatus;
  readonly expiresBefore?: string;
  readonly key?: string;
}

/** Nodes of these may still be heard of: the successor of another certificate reports in its place. */
const IN_USE: ReadonlySet<CertificateStatus> = new Set(['active', 'silent']);

export function addNodeFilters(command: Command): Command {
  return command
    .option('--role <role>', 'only those with this role')
    .addOption(
      new Option(
        '--health <status>',
        'only those that report this status; unwell for every one that is not well',
      ),
    )
    .option(
      '--silent-since <time>',
      'only those in use that were not heard of since this time, or for so long, such as 30d',
      timeAgo,
    );
}

export function addCertificateFilters(command: Command): Command {
  return addNodeFilters(command).option(
    '--expires-before <time>',
    'only those that expire before this time, or within a length such as 7d',
    timeAhead,
  );
}

/** The authority sorts out by some members, and this by the others. */
export function certificatePages(
  client: OperatorClient,
  filter: CertificateFilter,
): AsyncGenerator<readonly CertificateRow[], void> {
  const { status, role, expiresBefore, key } = filter;
  const filters = {
    ...(status !== undefined && { status }),
    ...(role !== undefined && { role }),
    ...(expiresBefore !== undefined && { expires_before: expiresBefore }),
    ...(key !== undefined && { key }),
  };
  return pagesOf(
    (page) => client.certificates({ ...filters, ...page }),
    ({ certificates }) => certificates.filter((row) => isIn(row, filter)),
  );
}

/** What the authority cannot filter by. */
export function isIn(row: CertificateRow, { health, silentSince }: NodeFilter): boolean {
  return (
    (health === undefined || isInHealth(row.node_status, health)) &&
    (silentSince === undefined || isSilentSince(row, silentSince))
  );
}

function isSilentSince({ status, last_contact }: CertificateRow, time: string): boolean {
  const since = parseRequestTimestamp(time);
  return since !== null && IN_USE.has(status) && Date.parse(last_contact) < since;
}

function isInHealth(status: string, wanted: string): boolean {
  return wanted === 'unwell' ? !reportsHealth(status) : status === wanted;
}

/** The certificate with this id, or the only one whose id begins so. */
export function wholeCertificateId(client: OperatorClient, given: string): Promise<string> {
  const ids = eachOf('Certificates', certificatePages(client, {}), ({ cert_id }) => cert_id);
  return wholeId(given, 'certificate', ids);
}

/** The node key itself, or the only one of a certificate that begins so. */
export function wholeNodeKey(client: OperatorClient, given: string): Promise<string> {
  const pages = certificatePages(client, {});
  return wholeKey(
    given,
    eachOf('Certificates', pages, ({ node_public_key }) => node_public_key),
  );
}

export const CERTIFICATE_COLUMNS: readonly Column<CertificateRow>[] = [
  idColumn('CERTIFICATE', (row) => row.cert_id),
  idColumn('KEY', (row) => row.node_public_key, 3),
  column('ROLES', (row) => row.roles.join(','), 4),
  column('STATUS', (row) => row.status),
  timeColumn('LAST CONTACT', (row) => row.last_contact, 6),
  timeColumn('EXPIRES', (row) => row.expires_at, 5),
  column('REASON', (row) => row.revocation_reason, 2),
];
