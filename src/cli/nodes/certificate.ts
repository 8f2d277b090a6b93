/** `mesh-na certificate`: looks up and revokes the certificates of nodes. */

import type { Command } from 'commander';
import { counted } from '../../base/counts.ts';
import { type CertificateFilters, certificatePages, isStillMeant } from '../../client/nodes.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import type { Revocation } from '../../protocol/answers/operators.ts';
import { listCertificates } from '../../protocol/api/certificates.ts';
import {
  REVOCATION_REASONS,
  type RevocationReason,
} from '../../protocol/records/revocation-list.ts';
import { type CertificateRow, isAccepted } from '../../protocol/rows/certificate.ts';
import { OPERATOR, type OperatorOptions, operatorClient } from '../connection/operator.ts';
import { resolveId, routeCommand, routeOptions } from '../connection/route-command.ts';
import { patienceFor } from '../connection/server.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { usageFailure } from '../kernel/errors.ts';
import { idArgument, nodeOrKey } from '../kernel/ids.ts';
import { type ListOptions, listOptions, printList, rowsOf } from '../kernel/list.ts';
import { timeAgo, timeAhead, wholeNumber } from '../kernel/options.ts';
import { asJson, type Line, printResult } from '../kernel/output.ts';
import { type Column, column, idColumn, timeColumn } from '../kernel/table.ts';
import { assertMeant, type Many, printDryRun, printPart } from '../kernel/terminal.ts';
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

export function addCertificateCommands(certificate: Command): void {
  const filters = routeOptions(listCertificates, {
    status: ['--status <status>', 'only those with this status'],
    key: [
      '--key <node>',
      'only certificates of this node: its key or name, or a unique prefix',
      nodeOrKey,
    ],
    ...FILTERS,
  });
  define(certificate, 'list', {
    about: 'list the certificates of nodes, including silent, expired and revoked ones (standard)',
    asks: OPERATOR,
    options: [...filters.options, ...listOptions(CERTIFICATE_COLUMNS)],
    examples: [
      "mesh-na certificate list --name 'web-*' --sort last-contact",
      'mesh-na certificate list --silent-since 30d',
      'mesh-na certificate list --expires-before 7d --json | jq .count',
    ],
    run: (_, __, command) => runList(filters.sentIn(command), command.opts()),
  });

  routeCommand(certificate, 'show', 'readCertificate', {
    about: 'show one certificate, and when its node last reported (standard)',
    values: { cert_id: 'certificate' },
    examples: ['mesh-na certificate show 5a1f6e0c'],
    text: certificateText,
  });

  defineRevoke(certificate);
}

async function runList(
  { key, ...filters }: CertificateFilters,
  options: OperatorOptions & ListOptions,
): Promise<void> {
  const client = operatorClient(options);
  const found = { ...filters, key: key && (await resolveId(options, 'node key', key)) };
  await printList(options, certificatePages(client, found), {
    member: 'certificates',
    columns: CERTIFICATE_COLUMNS,
    none: 'No certificates.',
  });
}

function certificateText(row: CertificateRow): Line[] {
  return [
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
  ];
}

const REVOKED: Many<CertificateRow> = {
  noun: 'certificate',
  verb: 'revoke',
  done: 'revoked',
  columns: CERTIFICATE_COLUMNS,
};

const REASON = option('--reason <reason>', 'reason for the revocation', {
  choices: REVOCATION_REASONS,
});

const DRY_RUN = option('--dry-run', 'show what would be revoked without changing anything');

/** Of the command that revokes what it is given a name or key of. */
export const REVOKE_NODE = [REASON, DRY_RUN, WIDE] as const;

const REVOKE = [
  option(
    '--key <node>',
    'instead, revoke all certificates of this node: its key or name, or a unique prefix',
    { parse: nodeOrKey },
  ),
  REASON,
  option('--status <status>', 'only those with this status', {
    choices: ['active', 'silent', 'renewed', 'in_use'],
  }),
] as const;

const CONFIRMED = [
  DRY_RUN,
  option(
    '--yes-revoke <n>',
    'revoke the matching certificates if there are exactly this many; otherwise you are asked for the number',
    { parse: wholeNumber() },
  ),
  WIDE,
] as const;

type RevokeOptions = OptionsIn<typeof REVOKE> & OptionsIn<typeof CONFIRMED> & OperatorOptions;

function defineRevoke(certificate: Command): void {
  const filters = certificateFilters();
  define(certificate, 'revoke', {
    about: 'revoke node certificates and publish a new revocation list (privileged)',
    asks: OPERATOR,
    args: [idArgument('certificate', { isOptional: true })],
    options: [...REVOKE, ...filters.options, ...CONFIRMED],
    notes:
      'Instead of naming a certificate or a key, select accepted certificates with --status, --role, --name, --label,\n--hostname, --address, --health, --silent-since and --expires-before. Each is revoked by a separate request.',
    examples: [
      'mesh-na certificate revoke 5a1f6e0c --reason key_compromise',
      'mesh-na certificate revoke --key web-3 --reason cessation_of_operation',
      'mesh-na certificate revoke --role role:client --silent-since 30d --dry-run',
    ],
    run(_, [given], command) {
      const options = command.opts<RevokeOptions>();
      return runRevoke(given, { ...filters.sentIn(command), status: options.status }, options);
    },
  });
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
  return hasFilters ? revokeMatching(filters, options) : revokeNamed(options, given);
}

/** Revokes one certificate, or all of the node that `key` names. */
export async function revokeNamed(
  options: OptionsIn<typeof REVOKE_NODE> & OperatorOptions & Pick<RevokeOptions, 'key'>,
  given?: string,
): Promise<void> {
  const { key } = options;
  const client = operatorClient(options);
  const target =
    given === undefined
      ? { node_public_key: await resolveId(options, 'node key', key ?? '') }
      : { cert_id: await resolveId(options, 'certificate', given) };
  if (options.dryRun) {
    const rows = await endedBy(client, target, options.reason);
    return printDryRun(REVOKED, rows, options);
  }
  const isKey = 'node_public_key' in target && target.node_public_key.startsWith(key ?? '');
  await revokeOne(client, target, options, isKey ? '' : nameIn(given ?? key ?? ''));
}

/** The name by which the user meant a certificate or node; nothing for an id or a key. */
function nameIn(given: string): string {
  return /^[0-9a-f-]{8,}$/.test(given) ? '' : ` of ${given}`;
}

type Target = { readonly cert_id: string } | { readonly node_public_key: string };

async function revokeOne(
  client: OperatorClient,
  target: Target,
  options: OptionsIn<typeof REVOKE_NODE> & OperatorOptions,
  named: string,
): Promise<void> {
  const revoked = await client.revokeCertificate({ ...target, reason: options.reason });
  const { revoked_cert_ids: ids = [], live_certificates_of_key: live } = revoked;
  const isOne = 'cert_id' in target;
  printResult(options, asJson(revoked), [
    isOne
      ? `Certificate ${target.cert_id}${named} is revoked.`
      : `${counted(ids.length, 'certificate')}${named === '' ? ' of the key' : `${named}, whose key is`} ${target.node_public_key}${named === '' ? '' : ','} revoked.`,
    ...(isOne && ids.length > 0
      ? [`${counted(ids.length, 'certificate')} of the same key revoked.`]
      : []),
    listSentence(revoked),
    ...(live !== undefined
      ? [`${counted(live, 'certificate')} of the same key still accepted; use --key to revoke all.`]
      : []),
  ]);
}

function listSentence({ crl_sequence, revoked_count }: Revocation): string {
  return `The revocation list has sequence ${crl_sequence} and ${counted(revoked_count, 'entry', 'entries')}.`;
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
  const rows = (await allIn(operatorClient(options), filters)).filter(({ status }) =>
    isAccepted(status),
  );
  if (dryRun) return printDryRun(REVOKED, rows, options);
  await assertMeant(REVOKED, rows, options.yesRevoke, options);
  // Operators may send fewer requests a minute than certificates match.
  const client = operatorClient({ ...options, wait: patienceFor(rows.length) });
  const revoked = new Set<string>();
  let leftAlone = 0;
  let last: Revocation | null = null;
  const done = () => ({
    count: revoked.size,
    revoked_cert_ids: [...revoked],
    ...asJson(last ?? {}),
  });
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
      printPart(options, done(), `Revoked ${revoked.size} of ${rows.length} certificates`);
      throw error;
    }
  }
  printResult(options, done(), [
    `${counted(revoked.size, 'certificate')} revoked.`,
    ...(leftAlone > 0
      ? [
          `${counted(leftAlone, 'certificate no longer matches', 'certificates no longer match')}, and nothing was revoked there.`,
        ]
      : []),
    ...(last === null ? [] : [listSentence(last)]),
  ]);
}

function allIn(client: OperatorClient, filters: CertificateFilters): Promise<CertificateRow[]> {
  return rowsOf('Certificates', certificatePages(client, filters));
}

/** How commands select certificates; each has options for the status and the key of its own. */
const FILTERS = {
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
} as const;

export const certificateFilters = () => routeOptions(listCertificates, FILTERS);
