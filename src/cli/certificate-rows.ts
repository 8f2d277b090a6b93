/** Filters and rows of certificates, shared by the commands for certificates and for nodes. */
import type { Command } from 'commander';
import { isInHealth } from '../authority/views/posture.ts';
import { parseRequestTimestamp } from '../base/timestamp.ts';
import { pagesOf } from '../client/list-pages.ts';
import type { OperatorClient } from '../client/operator-client.ts';
import { descriptionTest } from '../protocol/description-filter.ts';
import {
  type CertificateRow,
  type CertificateStatusFilter,
  isInUse,
} from '../protocol/rows/certificate.ts';
import { labelTexts } from '../protocol/rows/node-description.ts';
import {
  addDescriptionFilters,
  type DescriptionFilter,
  descriptionColumns,
} from './descriptions.ts';
import { eachOf } from './listing.ts';
import { timeAgo, timeAhead } from './options.ts';
import { wholeId, wholeKey } from './short-id.ts';
import { type Column, column, idColumn, timeColumn } from './table.ts';

export interface CertificateFilter extends DescriptionFilter {
  readonly role?: string;
  readonly health?: string;
  readonly silentSince?: string;
  readonly hostname?: string;
  /** The beginning of the address. */
  readonly address?: string;
  readonly status?: CertificateStatusFilter;
  readonly expiresBefore?: string;
  readonly key?: string;
}

export function addCertificateFilters(command: Command): Command {
  return addDescriptionFilters(command)
    .option(
      '--hostname <pattern>',
      'only nodes that reported this host name; * stands for any text',
    )
    .option(
      '--address <address>',
      'only nodes whose last contact came from an address that begins with this',
    )
    .option('--role <role>', 'only certificates with this role')
    .option(
      '--health <status>',
      'only nodes that report this status; unwell means any status but a healthy one',
    )
    .option(
      '--silent-since <time>',
      'only certificates in use whose nodes have not reported since this time, or for a duration such as 30d',
      timeAgo,
    )
    .option(
      '--expires-before <time>',
      'only certificates that expire before this time, or within a duration such as 7d',
      timeAhead,
    );
}

/** The filters among the options of a command, as the authority names them. */
function filtersIn(options: CertificateFilter) {
  return {
    status: options.status,
    role: options.role,
    expires_before: options.expiresBefore,
    key: options.key,
    name: options.name,
    label: options.label,
    hostname: options.hostname,
    health: options.health,
    remote_addr: options.address,
    silent_since: options.silentSince,
  };
}

/** Whether the options have any filter but a key. */
export function isFiltered(options: CertificateFilter): boolean {
  const { key: _, ...filters } = filtersIn(options);
  return Object.values(filters).some((filter) => filter !== undefined);
}

/** The rows of the authority that match, tested here too: an older authority does not know all filters. */
export function certificatePages(
  client: OperatorClient,
  filter: CertificateFilter,
): AsyncGenerator<readonly CertificateRow[], void> {
  const filters = filtersIn(filter);
  return pagesOf(
    (page) => client.certificates({ ...filters, ...page }),
    ({ certificates }) => certificates.filter((row) => isIn(row, filter)),
  );
}

export function isIn(
  row: CertificateRow,
  { name, label, hostname, address, health, silentSince }: CertificateFilter,
): boolean {
  const described = { ...row, labels: labelTexts(row.labels ?? {}) };
  const isWanted = descriptionTest({
    name: name ?? null,
    label: label ?? null,
    hostname: hostname ?? null,
  });
  return (
    (isWanted?.(described) ?? true) &&
    (address === undefined || row.remote_addr.startsWith(address)) &&
    (health === undefined || isInHealth(row.node_status, health)) &&
    (silentSince === undefined || isSilentSince(row, silentSince))
  );
}

function isSilentSince({ status, last_contact }: CertificateRow, time: string): boolean {
  const since = parseRequestTimestamp(time);
  return since !== null && isInUse(status) && Date.parse(last_contact) < since;
}

/** Returns the full certificate id for an id or unique prefix. */
export function wholeCertificateId(client: OperatorClient, given: string): Promise<string> {
  const pages = pagesOf(
    (page) => client.certificates({ cert_id: given, ...page }),
    ({ certificates }) => certificates,
  );
  return wholeId(
    given,
    'certificate',
    eachOf('Certificates', pages, ({ cert_id }) => cert_id),
  );
}

/** Returns the full node key for a key or unique prefix. */
export function wholeNodeKey(client: OperatorClient, given: string): Promise<string> {
  const pages = certificatePages(client, { key: given });
  return wholeKey(
    given,
    eachOf('Certificates', pages, ({ node_public_key }) => node_public_key),
  );
}

export const CERTIFICATE_COLUMNS: readonly Column<CertificateRow>[] = [
  idColumn('CERTIFICATE', (row) => row.cert_id),
  ...descriptionColumns<CertificateRow>((row) => row),
  idColumn('KEY', (row) => row.node_public_key, 3),
  column('ROLES', (row) => row.roles.join(','), 4),
  column('STATUS', (row) => row.status),
  timeColumn('LAST CONTACT', (row) => row.last_contact, 6),
  timeColumn('EXPIRES', (row) => row.expires_at, 5),
  column('REASON', (row) => row.revocation_reason, 2),
];
