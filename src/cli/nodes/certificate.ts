/** `mesh-na certificate`: looks up and revokes the certificates of nodes. */
import { type Command, Option } from 'commander';
import {
  type CertificateFilters,
  certificatePages,
  isStillMeant,
} from '../../client/certificate-search.ts';
import { pagesOf } from '../../client/list-pages.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import type { Revocation } from '../../protocol/answers/operators.ts';
import { listCertificates } from '../../protocol/api/certificates.ts';
import {
  REVOCATION_REASONS,
  type RevocationReason,
} from '../../protocol/records/revocation-list.ts';
import {
  CERTIFICATE_STATUS_FILTERS,
  type CertificateRow,
  type CertificateStatusFilter,
  isAccepted,
} from '../../protocol/rows/certificate.ts';
import {
  addOperatorOptions,
  type OperatorOptions,
  operatorClient,
} from '../connection/operator.ts';
import { routeCommand, routeOptions } from '../connection/route-command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { keyOrBeginning, wholeId, wholeKey } from '../kernel/ids.ts';
import { addListOptions, eachOf, type ListOptions, printList, rowsOf } from '../kernel/list.ts';
import { statusOption, timeAgo, timeAhead, wholeNumber } from '../kernel/options.ts';
import { asJson, type OutputOptions, printNotice, printResult } from '../kernel/output.ts';
import {
  addWideOption,
  type Column,
  column,
  idColumn,
  type TableOptions,
  timeColumn,
} from '../kernel/table.ts';
import { assertMeant, type Many, printDryRun } from '../kernel/terminal.ts';
import { descriptionColumns, descriptionLines, labelFilter, nameFilter } from './descriptions.ts';

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

export function addCertificateCommands(program: Command): void {
  const certificate = program
    .command('certificate')
    .description('look up and revoke certificates of nodes');
  defineList(certificate.command('list'));

  routeCommand(certificate.command('show'), 'readCertificate', {
    about: 'show one certificate, and when its node last reported (standard)',
    values: { cert_id: ['<cert-id>', 'certificate id, or at least its first 8 characters'] },
    examples: ['mesh-na certificate show 5a1f6e0c'],
    sent: async ({ cert_id }, options: OperatorOptions) => ({
      cert_id: await wholeCertificateId(operatorClient(options), cert_id),
    }),
    show: printCertificate,
  });

  defineRevoke(certificate.command('revoke'));
}

interface CertificateListOptions extends OperatorOptions, ListOptions {
  readonly key?: string;
  readonly status?: CertificateStatusFilter;
}

function defineList(list: Command): void {
  const filters = certificateFilters();
  list
    .description(
      'list the certificates of nodes, including silent, expired and revoked ones (standard)',
    )
    .addOption(statusOption(CERTIFICATE_STATUS_FILTERS))
    .option('--key <public-key>', 'only certificates of this node key', keyOrBeginning)
    .action((options) => runList(filters.sentIn(list), options));
  addOperatorOptions(addListOptions(filters.addTo(list), CERTIFICATE_COLUMNS), [
    "mesh-na certificate list --name 'web-*' --sort last-contact",
    'mesh-na certificate list --silent-since 30d',
    'mesh-na certificate list --expires-before 7d --json | jq .count',
  ]);
}

async function runList(
  filters: CertificateFilters,
  options: CertificateListOptions,
): Promise<void> {
  const client = operatorClient(options);
  const { key, status } = options;
  const found = { ...filters, status, key: key && (await wholeNodeKey(client, key)) };
  await printList(options, certificatePages(client, found), {
    member: 'certificates',
    columns: CERTIFICATE_COLUMNS,
    none: 'No certificates.',
  });
}

function printCertificate(options: OutputOptions, row: CertificateRow): void {
  printResult(options, asJson(row), [
    `certificate   ${row.cert_id}`,
    `key           ${row.node_public_key}`,
    ...descriptionLines(row),
    `roles         ${row.roles.join(', ') || 'none'}`,
    `status        ${row.status}`,
    `last contact  ${row.last_contact} from ${row.remote_addr}: ${row.node_status}`,
    `issued        ${row.issued_at}`,
    `expires       ${row.expires_at}`,
    ...(row.renewed_from === null ? [] : [`renews        ${row.renewed_from}`]),
    ...(row.superseded_from === null ? [] : [`superseded    ${row.superseded_from}`]),
    ...(row.revoked_at === null
      ? []
      : [`revoked       ${row.revoked_at}, ${row.revocation_reason}`]),
  ]);
}

const REVOKED: Many<CertificateRow> = {
  plural: 'certificates',
  title: 'Certificates',
  verb: 'revoke',
  done: 'revoked',
  columns: CERTIFICATE_COLUMNS,
};

interface RevokeOptions extends OperatorOptions, TableOptions {
  readonly key?: string;
  readonly status?: CertificateStatusFilter;
  readonly reason?: RevocationReason;
  readonly dryRun?: boolean;
  readonly yesRevoke?: number;
}

function defineRevoke(revoke: Command): void {
  const filters = certificateFilters();
  revoke
    .description('revoke node certificates and publish a new revocation list (privileged)')
    .argument('[cert-id]', 'certificate id, or at least its first 8 characters')
    .option(
      '--key <public-key>',
      'instead, revoke all certificates of this node key (a unique prefix is enough)',
      keyOrBeginning,
    )
    .addOption(
      new Option('--reason <reason>', 'reason for the revocation').choices(REVOCATION_REASONS),
    )
    .addOption(statusOption(['active', 'silent', 'renewed', 'in_use']));
  filters
    .addTo(revoke)
    .option('--dry-run', 'show what would be revoked without changing anything')
    .option(
      '--yes-revoke <n>',
      'revoke the matching certificates if there are exactly this many; otherwise you are asked for the number',
      wholeNumber(),
    )
    .addHelpText(
      'after',
      '\nInstead of naming a certificate or a key, select accepted certificates with --status, --role, --name, --label,\n--hostname, --address, --health, --silent-since and --expires-before. Each is revoked by a separate request.',
    )
    .action((given: string | undefined, options: RevokeOptions) =>
      runRevoke(given, { ...filters.sentIn(revoke), status: options.status }, options),
    );
  addOperatorOptions(addWideOption(revoke), [
    'mesh-na certificate revoke 5a1f6e0c --reason key_compromise',
    'mesh-na certificate revoke --key "$NODE_KEY" --reason cessation_of_operation',
    'mesh-na certificate revoke --role role:client --silent-since 30d --dry-run',
  ]);
}

async function runRevoke(
  given: string | undefined,
  filters: CertificateFilters,
  options: RevokeOptions,
): Promise<void> {
  const { key } = options;
  const hasFilters = Object.values(filters).some((filter) => filter !== undefined);
  const ways = [given !== undefined, key !== undefined, hasFilters];
  if (ways.filter(Boolean).length !== 1) {
    throw usageFailure('Give one certificate, a node key with --key, or filters');
  }
  if (hasFilters) return revokeMatching(filters, options);
  const client = operatorClient(options);
  const target =
    given === undefined
      ? { node_public_key: await wholeNodeKey(client, key ?? '') }
      : { cert_id: await wholeCertificateId(client, given) };
  if (options.dryRun) {
    const rows = await endedBy(client, target, options.reason);
    return printDryRun(REVOKED, rows, options);
  }
  await revokeOne(client, target, options);
}

type Target = { readonly cert_id: string } | { readonly node_public_key: string };

async function revokeOne(
  client: OperatorClient,
  target: Target,
  options: RevokeOptions,
): Promise<void> {
  const revoked = await client.revokeCertificate({ ...target, reason: options.reason });
  const { revoked_cert_ids: ids = [], live_certificates_of_key: live } = revoked;
  const isOne = 'cert_id' in target;
  printResult(options, asJson(revoked), [
    isOne
      ? `Certificate ${target.cert_id} is revoked.`
      : `Revoked certificates of the key ${target.node_public_key}: ${ids.length}.`,
    ...(isOne && ids.length > 0 ? [`Revoked certificates of the same key: ${ids.length}.`] : []),
    listSentence(revoked),
    ...(live !== undefined
      ? [`Accepted certificates of the same key: ${live}; use --key to revoke them all.`]
      : []),
  ]);
}

function listSentence({ crl_sequence, revoked_count }: Revocation): string {
  return `The revocation list has sequence ${crl_sequence} and ${revoked_count} entries.`;
}

/** Returns the certificates that a request for one certificate or key would revoke. */
async function endedBy(
  client: OperatorClient,
  target: Target,
  reason: RevocationReason | undefined,
): Promise<CertificateRow[]> {
  const named = 'cert_id' in target ? await client.readCertificate(target) : null;
  const isAlone = named !== null && reason !== 'key_compromise';
  const key = named?.node_public_key ?? ('cert_id' in target ? '' : target.node_public_key);
  const rows = isAlone ? [named] : await allIn(client, { key });
  return rows.filter(({ status }) => status !== 'revoked' && status !== 'expired');
}

async function revokeMatching(filters: CertificateFilters, options: RevokeOptions): Promise<void> {
  const { dryRun, reason } = options;
  const client = operatorClient(options);
  const rows = (await allIn(client, filters)).filter(({ status }) => isAccepted(status));
  if (dryRun) return printDryRun(REVOKED, rows, options);
  await assertMeant(REVOKED, rows, options.yesRevoke, options);
  const revoked = new Set<string>();
  let leftAlone = 0;
  let last: Revocation | null = null;
  for (const { cert_id } of rows) {
    try {
      if (revoked.has(cert_id)) continue;
      if (!(await isStillMeant(client, cert_id, filters))) {
        leftAlone += 1;
        continue;
      }
      last = await client.revokeCertificate({ cert_id, reason });
      for (const id of last.revoked_cert_ids ?? [cert_id]) revoked.add(id);
    } catch (error) {
      printNotice(`Revoked ${revoked.size} of ${rows.length} certificates before this failed`);
      throw error;
    }
  }
  printResult(
    options,
    { count: revoked.size, revoked_cert_ids: [...revoked], ...asJson(last ?? {}) },
    [
      `Certificates revoked: ${revoked.size}.`,
      ...(leftAlone > 0 ? [`Not revoked, because they no longer match: ${leftAlone}.`] : []),
      ...(last === null ? [] : [listSentence(last)]),
    ],
  );
}

function allIn(client: OperatorClient, filters: CertificateFilters): Promise<CertificateRow[]> {
  return rowsOf('Certificates', certificatePages(client, filters));
}

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
