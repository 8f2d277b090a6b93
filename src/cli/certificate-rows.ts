/** Certificates as commands choose and show them: what those about certificates and about nodes share. */
import { type Command, Option } from 'commander';
import { reportsHealth } from '../authority/views/posture.ts';
import { parseRequestTimestamp } from '../base/timestamp.ts';
import type { OperatorClient } from '../client/operator-client.ts';
import type { CertificateRow, CertificateStatus } from '../protocol/rows/certificate.ts';
import { eachOf, pagesOf } from './listing.ts';
import { timeAgo, timeAhead } from './options.ts';
import { wholeId, wholeKey } from './short-id.ts';
import { idColumn, timeColumn } from './table.ts';

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

export function statusOption(statuses: readonly CertificateStatus[]): Option {
  return new Option('--status <status>', 'only those with this status').choices(statuses);
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

export const CERTIFICATE_COLUMNS = [
  idColumn('CERTIFICATE'),
  idColumn('KEY', 3),
  { title: 'ROLES', rank: 4 },
  'STATUS',
  timeColumn('LAST CONTACT', 6),
  timeColumn('EXPIRES', 5),
  { title: 'REASON', rank: 2 },
];

export function certificateCells(row: CertificateRow): string[] {
  return [
    row.cert_id,
    row.node_public_key,
    row.roles.join(','),
    row.status,
    row.last_contact,
    row.expires_at,
    row.revocation_reason ?? '',
  ];
}
