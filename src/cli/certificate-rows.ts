/** Filters and rows of certificates, shared by the commands for certificates and for nodes. */
import type { Command } from 'commander';
import { type CertificateFilters, certificatePages } from '../client/certificate-search.ts';
import { pagesOf } from '../client/list-pages.ts';
import type { OperatorClient } from '../client/operator-client.ts';
import type { CertificateRow, CertificateStatusFilter } from '../protocol/rows/certificate.ts';
import {
  addDescriptionFilters,
  type DescriptionFilter,
  descriptionColumns,
} from './descriptions.ts';
import { eachOf } from './listing.ts';
import { collect, timeAgo, timeAhead } from './options.ts';
import { wholeId, wholeKey } from './short-id.ts';
import { type Column, column, idColumn, timeColumn } from './table.ts';

/** The filters among the options of a command. */
export interface FilterOptions extends DescriptionFilter {
  readonly role?: readonly string[];
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
    .option(
      '--role <role>',
      'only certificates with this role, or any of these (repeatable)',
      collect,
    )
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

/** As the authority names them. */
export function filtersIn(options: FilterOptions): CertificateFilters {
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
export function isFiltered(options: FilterOptions): boolean {
  const { key: _, ...filters } = filtersIn(options);
  return Object.values(filters).some((filter) => filter !== undefined);
}

/** Returns the full certificate id for an id or unique prefix. */
export function wholeCertificateId(client: OperatorClient, given: string): Promise<string> {
  const pages = pagesOf(
    (page) => client.listCertificates({ cert_id: given, ...page }),
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
