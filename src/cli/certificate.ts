/** `mesh-na certificate`: the certificates of nodes. */
import type { Command } from 'commander';
import { CERTIFICATE_STATUSES } from '../protocol/rows/certificate.ts';
import { defineRevoke } from './certificate-revoke.ts';
import {
  addCertificateFilters,
  CERTIFICATE_COLUMNS,
  type CertificateFilter,
  certificateCells,
  certificatePages,
  statusOption,
  wholeCertificateId,
  wholeNodeKey,
} from './certificate-rows.ts';
import { printList } from './listing.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { asJson, printResult } from './output.ts';
import { keyOrBeginning } from './short-id.ts';
import { addWideOption, type TableOptions } from './table.ts';

export function addCertificateCommands(program: Command): void {
  const certificate = program
    .command('certificate')
    .description('look up and revoke certificates of nodes');
  defineList(certificate.command('list'));
  defineShow(certificate.command('show'));
  defineRevoke(certificate.command('revoke'));
}

interface ListOptions extends OperatorOptions, CertificateFilter, TableOptions {}

function defineList(list: Command): void {
  list
    .description('list the certificates of nodes, silent, expired and revoked ones too (standard)')
    .addOption(statusOption(CERTIFICATE_STATUSES))
    .option('--key <public-key>', 'only those of this node key', keyOrBeginning)
    .action(runList);
  addOperatorOptions(addWideOption(addCertificateFilters(list)), [
    'mesh-na certificate list --silent-since 30d',
    'mesh-na certificate list --expires-before 7d --json | jq .count',
  ]);
}

function defineShow(show: Command): void {
  show
    .description('show one certificate, and when its node was last heard of (standard)')
    .argument('<cert-id>', 'certificate to show, or the first 8 characters of its id or more')
    .action(runShow);
  addOperatorOptions(show, ['mesh-na certificate show 5a1f6e0c']);
}

async function runList(options: ListOptions): Promise<void> {
  const client = operatorClient(options);
  const { key } = options;
  const filter = key === undefined ? options : { ...options, key: await wholeNodeKey(client, key) };
  await printList(options, certificatePages(client, filter), {
    member: 'certificates',
    columns: CERTIFICATE_COLUMNS,
    cells: certificateCells,
    none: 'No certificates.',
  });
}

async function runShow(given: string, options: OperatorOptions): Promise<void> {
  const client = operatorClient(options);
  const row = await client.certificate(await wholeCertificateId(client, given));
  printResult(options, asJson(row), [
    `certificate   ${row.cert_id}`,
    `key           ${row.node_public_key}`,
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
