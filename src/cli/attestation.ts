/** `mesh-na attestation`: signed evidence of membership. */
import { type Command, Option } from 'commander';
import type { JsonObject } from '../base/json/value.ts';
import { pagesOf } from '../client/list-pages.ts';
import { usageFailure } from './exit-codes.ts';
import { readJsonFile } from './json-file.ts';
import { eachOf, printList } from './listing.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import {
  addPublicOptions,
  collect,
  collectAs,
  jsonObject,
  type PublicOptions,
  publicKey,
  statusOption,
  wholeNumber,
} from './options.ts';
import { printResult, printVerdict } from './output.ts';
import { addOutOption, type RecordOptions, showRecord } from './record-output.ts';
import { publicClient } from './server.ts';
import { wholeId } from './short-id.ts';
import { addWideOption, column, idColumn, type TableOptions, timeColumn } from './table.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

interface IssueOptions extends OperatorOptions, RecordOptions {
  readonly role: readonly string[];
  readonly validityHours?: number;
  readonly subjectKey?: string;
  readonly claims?: JsonObject;
  readonly issuer?: string;
}

interface ListOptions extends PublicOptions, TableOptions {
  readonly issuer?: string;
  readonly subject?: string;
  readonly status?: 'active' | 'revoked';
}

interface VerifyOptions extends VerificationOptions {
  readonly policy?: string;
  readonly treaty?: string;
  readonly treatyKey?: readonly string[];
}

export function addAttestationCommands(program: Command): void {
  const attestation = program
    .command('attestation')
    .description('attest membership, and verify attestations of others');
  defineIssue(attestation.command('issue'));
  defineRevoke(attestation.command('revoke'));
  defineList(attestation.command('list'));
  defineVerify(attestation.command('verify'));
}

function defineIssue(issue: Command): void {
  issue
    .description('issue signed evidence that a subject is a member (privileged)')
    .argument('<subject-id>', 'subject of the attestation')
    .requiredOption('--role <role>', 'role of the subject (repeatable)', collect)
    .option('--validity-hours <n>', 'how long it is valid (default: 168)', wholeNumber())
    .option('--subject-key <key>', 'public key of the subject', publicKey)
    .addOption(new Option('--claims <json>', 'claims about the subject').argParser(jsonObject))
    .option('--issuer <name>', "issuing sovereign (default: the authority's)")
    .action(runIssue);
  addOperatorOptions(addOutOption(issue, 'the signed attestation'), [
    'mesh-na attestation issue agent-7 --role role:client --out agent-7.json',
    `mesh-na attestation issue agent-7 --role role:client --claims '{"tier":"gold"}'`,
  ]);
}

function defineRevoke(revoke: Command): void {
  revoke
    .description('revoke an attestation and add it to the revocation feed (privileged)')
    .argument('<attestation-id>', 'attestation id, or at least its first 8 characters')
    .option('--reason <text>', 'reason for the revocation')
    .action(runRevoke);
  addOperatorOptions(revoke, [
    'mesh-na attestation revoke 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason "left the team"',
  ]);
}

function defineList(list: Command): void {
  list
    .description('list the attestations of the authority, oldest first')
    .option('--issuer <name>', 'only attestations of this sovereign')
    .option('--subject <id>', 'only attestations of this subject')
    .addOption(statusOption())
    .action(runList);
  addPublicOptions(addWideOption(list), [
    'mesh-na attestation list --subject agent-7',
    'mesh-na attestation list --status revoked --json',
  ]);
}

function defineVerify(verify: Command): void {
  verify
    .description('verify an attestation; exit code 4 if it is rejected')
    .argument('<file>', 'the signed attestation, - for standard input')
    .option('--policy <file>', "recognition policy to apply (default: the authority's)")
    .addOption(new Option('--treaty <file>', 'treaty to apply').conflicts('policy'))
    .option(
      '--treaty-key <key>',
      "key that must have signed the treaty (repeatable; default: the authority's)",
      collectAs(publicKey),
    )
    .option(
      '--feed <file>',
      'revocation feed of the issuer; needed offline to check for revocation',
    )
    .action(runVerify);
  addVerificationOptions(verify, [
    'mesh-na attestation verify agent-7.json',
    'mesh-na attestation verify agent-7.json --policy recognition.json --offline',
    'mesh-na attestation verify agent-7.json --treaty alpha-beta.json && echo accepted',
  ]);
}

async function runIssue(subjectId: string, options: IssueOptions): Promise<void> {
  const attestation = await operatorClient(options).issueAttestation({
    subject_id: subjectId,
    roles: options.role,
    validity_hours: options.validityHours,
    subject_public_key: options.subjectKey,
    claims: options.claims,
    issuer_sovereign_id: options.issuer,
  });
  const { attestation_id, subject_id } = attestation;
  showRecord(options, attestation, `Attestation ${attestation_id} is issued to ${subject_id}`, [
    `Issuer: ${attestation.issuer_sovereign_id}. Roles: ${attestation.roles.join(', ')}. Expires: ${attestation.expires_at}.`,
  ]);
}

async function runRevoke(
  given: string,
  options: OperatorOptions & { readonly reason?: string },
): Promise<void> {
  const pages = pagesOf(
    (page) => publicClient(options).listAttestations(page),
    ({ attestations }) => attestations,
  );
  const ids = eachOf('Attestations', pages, ({ attestation }) => attestation.attestation_id);
  const id = await wholeId(given, 'attestation', ids);
  const revoked = await operatorClient(options).revokeAttestation({
    attestation_id: id,
    reason: options.reason,
  });
  const text = revoked.already_revoked ? 'was already revoked' : 'is revoked';
  printResult(options, revoked, [`Attestation ${id} ${text}.`]);
}

async function runList(options: ListOptions): Promise<void> {
  const { issuer, subject, status } = options;
  const client = publicClient(options);
  const filters = { issuer_sovereign_id: issuer, subject_id: subject, status };
  const pages = pagesOf(
    (page) => client.listAttestations({ ...filters, ...page }),
    ({ attestations }) => attestations,
  );
  await printList(options, pages, {
    member: 'attestations',
    columns: [
      idColumn('ATTESTATION', ({ attestation }) => attestation.attestation_id),
      column('ISSUER', ({ attestation }) => attestation.issuer_sovereign_id, 2),
      column('SUBJECT', ({ attestation }) => attestation.subject_id),
      column('ROLES', ({ attestation }) => attestation.roles.join(','), 3),
      column('STATUS', ({ status }) => status, 5),
      timeColumn('EXPIRES', ({ attestation }) => attestation.expires_at, 4),
      column('REASON', (row) => row.revocation_reason, 1),
    ],
    none: 'No attestations.',
  });
}

async function runVerify(file: string, options: VerifyOptions): Promise<void> {
  const { policy, treaty, treatyKey } = options;
  if (treatyKey !== undefined && treaty === undefined) {
    throw usageFailure('--treaty-key needs --treaty');
  }
  const attestation = await readJsonFile(file);
  if (treaty === undefined) return verifyByPolicy(attestation, options, policy);
  const verdict = await (await verifierOf(options)).verifyAttestationWithTreaty({
    attestation,
    treaty: await readJsonFile(treaty),
    ...(treatyKey && { treaty_issuer_public_keys: treatyKey }),
  });
  const { attestation_id, treaty_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} under treaty ${treaty_id}`);
}

async function verifyByPolicy(
  attestation: JsonObject,
  options: VerifyOptions,
  policy: string | undefined,
): Promise<void> {
  const verdict = await (await verifierOf(options)).verifyAttestation({
    attestation,
    ...(policy !== undefined && { recognition_policy: await readJsonFile(policy) }),
  });
  const { attestation_id, issuer_sovereign_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} of ${issuer_sovereign_id}`);
}
