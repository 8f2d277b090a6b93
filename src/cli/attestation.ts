/** `mesh-na attestation`: signed evidence of membership. */
import { type Command, Option } from 'commander';
import type { AttestationList } from '../answers/recognition.ts';
import type { JsonObject } from '../json/value.ts';
import { defineVerify } from './attestation-verify.ts';
import { defineRenamed } from './earlier-name.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import {
  addPublicOptions,
  collect,
  jsonObject,
  type PublicOptions,
  publicKey,
  statusOption,
  wholeNumber,
} from './options.ts';
import { printResult } from './output.ts';
import type { Line } from './printable.ts';
import { addOutOption, type RecordOptions, showRecord } from './record-output.ts';
import { publicClient } from './server.ts';
import { tableOf } from './table.ts';

interface IssueOptions extends OperatorOptions, RecordOptions {
  readonly role: readonly string[];
  readonly validityHours?: number;
  readonly subjectKey?: string;
  readonly claims?: JsonObject;
  readonly issuer?: string;
}

interface ListOptions extends PublicOptions {
  readonly issuer?: string;
  readonly subject?: string;
  readonly status?: 'active' | 'revoked';
}

export function addAttestationCommands(program: Command): void {
  const attestation = program
    .command('attestation')
    .description('say who is a member, and verify what others say');
  for (const [verb, name, define] of [
    ['issue', 'attest', defineIssue],
    ['revoke', 'revoke-attestation', defineRevoke],
    ['list', 'attestations', defineList],
    ['verify', 'verify-attestation', defineVerify],
  ] as const) {
    defineRenamed(attestation.command(verb), { parent: program, name }, define);
  }
}

function defineIssue(issue: Command): void {
  issue
    .description('issue signed evidence that a subject is a member (privileged)')
    .argument('<subject-id>', 'subject of the attestation')
    .requiredOption('--role <role>', 'role of the subject (repeatable)', collect)
    .option('--validity-hours <n>', 'how long it is valid (default: 168)', wholeNumber())
    .option('--subject-key <key>', 'public key of the subject', publicKey)
    .addOption(new Option('--claims <json>', 'claims about the subject').argParser(jsonObject))
    .option('--issuer <name>', 'issuing sovereign (default: that of the authority)')
    .action(runIssue);
  addOperatorOptions(addOutOption(issue, 'the signed attestation'), [
    'mesh-na attestation issue agent-7 --role role:client --out agent-7.json',
    `mesh-na attestation issue agent-7 --role role:client --claims '{"tier":"gold"}'`,
  ]);
}

function defineRevoke(revoke: Command): void {
  revoke
    .description('revoke an attestation and put it on the revocation feed (privileged)')
    .argument('<attestation-id>', 'attestation to revoke')
    .option('--reason <text>', 'why')
    .action(runRevoke);
  addOperatorOptions(revoke, [
    'mesh-na attestation revoke 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason "left the team"',
  ]);
}

function defineList(list: Command): void {
  list
    .description('list the attestations of the authority, the oldest first')
    .option('--issuer <name>', 'only those of this sovereign')
    .option('--subject <id>', 'only those about this subject')
    .addOption(statusOption())
    .action(runList);
  addPublicOptions(list, [
    'mesh-na attestation list --subject agent-7',
    'mesh-na attestation list --status revoked --json',
  ]);
}

async function runIssue(subjectId: string, options: IssueOptions): Promise<void> {
  const { role, validityHours, subjectKey, claims, issuer } = options;
  const attestation = await operatorClient(options).issueAttestation({
    subject_id: subjectId,
    roles: role,
    ...(validityHours && { validity_hours: validityHours }),
    ...(subjectKey !== undefined && { subject_public_key: subjectKey }),
    ...(claims && { claims }),
    ...(issuer !== undefined && { issuer_sovereign_id: issuer }),
  });
  const { attestation_id, subject_id } = attestation;
  showRecord(options, attestation, `Attestation ${attestation_id} is issued to ${subject_id}`, [
    `Issuer: ${attestation.issuer_sovereign_id}. Roles: ${attestation.roles.join(', ')}. Expires: ${attestation.expires_at}.`,
  ]);
}

async function runRevoke(
  id: string,
  options: OperatorOptions & { readonly reason?: string },
): Promise<void> {
  const { reason } = options;
  const request = reason === undefined ? {} : { reason };
  const revoked = await operatorClient(options).revokeAttestation(id, request);
  const text = revoked.already_revoked ? 'was revoked before' : 'is revoked';
  printResult(options, revoked, [`Attestation ${id} ${text}.`]);
}

async function runList(options: ListOptions): Promise<void> {
  const { issuer, subject, status } = options;
  const list = await publicClient(options).attestations({
    ...(issuer !== undefined && { issuer_sovereign_id: issuer }),
    ...(subject !== undefined && { subject_id: subject }),
    ...(status !== undefined && { status }),
  });
  printResult(options, list, listText(list));
}

function listText({ attestations }: AttestationList): Line[] {
  if (attestations.length === 0) return ['No attestations.'];
  const rows = attestations.map(({ attestation, status, revocation_reason }) => [
    attestation.attestation_id,
    attestation.issuer_sovereign_id,
    attestation.subject_id,
    attestation.roles.join(','),
    status,
    attestation.expires_at,
    revocation_reason ?? '',
  ]);
  const header = ['ATTESTATION', 'ISSUER', 'SUBJECT', 'ROLES', 'STATUS', 'EXPIRES', 'REASON'];
  return tableOf([header, ...rows]);
}
