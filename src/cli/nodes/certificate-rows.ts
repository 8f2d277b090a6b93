/** Filters and rows of certificates, shared by the commands for certificates and for nodes. */
import { certificatePages } from '../../client/certificate-search.ts';
import { pagesOf } from '../../client/list-pages.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import { listCertificates } from '../../protocol/api/certificates.ts';
import type { CertificateRow } from '../../protocol/rows/certificate.ts';
import { routeOptions } from '../connection/route-options.ts';
import { eachOf } from '../kernel/list.ts';
import { timeAgo, timeAhead } from '../kernel/options.ts';
import { wholeId, wholeKey } from '../kernel/short-id.ts';
import { type Column, column, idColumn, timeColumn } from '../kernel/table.ts';
import { descriptionColumns, labelFilter, nameFilter } from './descriptions.ts';

/** How commands select certificates; each has options for the status and the key of its own. */
export const certificateFilters = () =>
  routeOptions(listCertificates, {
    name: nameFilter(),
    label: labelFilter(),
    hostname: [
      '--hostname <pattern>',
      'only nodes that reported this host name; * stands for any text',
    ],
    remote_addr: [
      '--address <address>',
      'only nodes whose last contact came from an address that begins with this',
    ],
    role: ['--role <role>', 'only certificates with this role, or any of these'],
    health: [
      '--health <status>',
      'only nodes that report this status; unwell means any status but a healthy one',
    ],
    silent_since: [
      '--silent-since <time>',
      'only certificates in use whose nodes have not reported since this time, or for a duration such as 30d',
      timeAgo,
    ],
    expires_before: [
      '--expires-before <time>',
      'only certificates that expire before this time, or within a duration such as 7d',
      timeAhead,
    ],
  });

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
