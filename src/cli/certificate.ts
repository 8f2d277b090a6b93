/** `mesh-na certificate`: the certificates of nodes. */
import { type Command, Option } from 'commander';
import type { CertificateList } from '../answers/operators.ts';
import { REVOCATION_REASONS, type RevocationReason } from '../records/revocation-list.ts';
import { CERTIFICATE_STATUSES, type CertificateStatus } from '../views/rows/certificate.ts';
import { defineRenamed } from './earlier-name.ts';
import { usageFailure } from './exit-codes.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { publicKey } from './options.ts';
import { asJson, printResult } from './output.ts';
import type { Line } from './printable.ts';
import { tableOf } from './table.ts';

export function addCertificateCommands(program: Command): void {
  const certificate = program
    .command('certificate')
    .description('look up and revoke certificates of nodes');
  defineList(certificate.command('list'));
  defineShow(certificate.command('show'));
  defineRenamed(certificate.command('revoke'), { parent: program, name: 'revoke' }, defineRevoke);
}

interface ListOptions extends OperatorOptions {
  readonly status?: CertificateStatus;
  readonly role?: string;
  readonly expiresBefore?: string;
  readonly key?: string;
}

function defineList(list: Command): void {
  list
    .description('list the certificates of nodes, silent, expired and revoked ones too (standard)')
    .addOption(
      new Option('--status <status>', 'only those with this status').choices(CERTIFICATE_STATUSES),
    )
    .option('--role <role>', 'only those with this role')
    .option('--expires-before <time>', 'only those that expire before this time')
    .option('--key <public-key>', 'only those of this node key', publicKey)
    .action(runList);
  addOperatorOptions(list, [
    'mesh-na certificate list --status silent',
    'mesh-na certificate list --expires-before 2026-12-01 --json | jq .count',
  ]);
}

function defineShow(show: Command): void {
  show
    .description('show one certificate, and when its node was last heard of (standard)')
    .argument('<cert-id>', 'certificate to show')
    .action(runShow);
  addOperatorOptions(show, ['mesh-na certificate show 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00']);
}

async function runList(options: ListOptions): Promise<void> {
  const { status, role, expiresBefore, key } = options;
  const list = await operatorClient(options).certificates({
    ...(status !== undefined && { status }),
    ...(role !== undefined && { role }),
    ...(expiresBefore !== undefined && { expires_before: expiresBefore }),
    ...(key !== undefined && { key }),
  });
  printResult(options, asJson(list), listText(list));
}

function listText({ certificates }: CertificateList): Line[] {
  if (certificates.length === 0) return ['No certificates.'];
  const rows = certificates.map((row) => [
    row.cert_id,
    row.node_public_key,
    row.roles.join(','),
    row.status,
    row.last_contact,
    row.expires_at,
    row.revocation_reason ?? '',
  ]);
  const header = ['CERTIFICATE', 'KEY', 'ROLES', 'STATUS', 'LAST CONTACT', 'EXPIRES', 'REASON'];
  return tableOf([header, ...rows]);
}

async function runShow(certId: string, options: OperatorOptions): Promise<void> {
  const row = await operatorClient(options).certificate(certId);
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

interface RevokeOptions extends OperatorOptions {
  readonly key?: string;
  readonly reason?: RevocationReason;
}

function defineRevoke(revoke: Command): void {
  revoke
    .description('revoke node certificates and publish a new revocation list (privileged)')
    .argument('[cert-id]', 'certificate to revoke')
    .option('--key <public-key>', 'in its place: all certificates of this node key', publicKey)
    .addOption(new Option('--reason <reason>', 'why').choices(REVOCATION_REASONS))
    .action(runRevoke);
  addOperatorOptions(revoke, [
    'mesh-na certificate revoke 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason key_compromise',
    'mesh-na certificate revoke --key "$NODE_KEY" --reason cessation_of_operation',
  ]);
}

async function runRevoke(certId: string | undefined, options: RevokeOptions): Promise<void> {
  const { key, reason } = options;
  const request = { ...targetOf(certId, key), ...(reason && { reason }) };
  const revoked = await operatorClient(options).revoke(request);
  const { revoked_cert_ids: ids = [], live_certificates_of_key: live } = revoked;
  printResult(options, asJson(revoked), [
    certId === undefined
      ? `Certificates of the key ${key} that are revoked: ${ids.length}.`
      : `Certificate ${certId} is revoked.`,
    ...(certId !== undefined && ids.length > 0
      ? [`Certificates of its key that are revoked: ${ids.length}.`]
      : []),
    `The revocation list has sequence ${revoked.crl_sequence} and ${revoked.revoked_count} entries.`,
    ...(live !== undefined
      ? [`Live certificates of the same key: ${live}; --key revokes all of them.`]
      : []),
  ]);
}

function targetOf(certId: string | undefined, key: string | undefined) {
  if (certId !== undefined && key === undefined) return { cert_id: certId };
  if (certId === undefined && key !== undefined) return { node_public_key: key };
  throw usageFailure('Name one certificate, or the key of a node by --key');
}
