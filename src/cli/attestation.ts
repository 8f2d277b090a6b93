/** `mesh-na attestation`: signed evidence of membership. */
import { type Command, Option } from 'commander';
import type { JsonObject } from '../base/json/value.ts';
import { pagesOf } from '../client/list-pages.ts';
import {
  issueAttestation,
  listAttestations,
  revokeAttestation,
} from '../protocol/api/attestations.ts';
import { usageFailure } from './exit-codes.ts';
import { readJsonFile } from './json-file.ts';
import { eachOf, printList } from './listing.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import {
  addPublicOptions,
  collectAs,
  type PublicOptions,
  publicKey,
  statusOption,
} from './options.ts';
import { printResult, printVerdict } from './output.ts';
import { addOutOption, type RecordOptions, showRecord } from './record-output.ts';
import { routeOptions } from './route-options.ts';
import { publicClient } from './server.ts';
import { wholeId } from './short-id.ts';
import { addWideOption, column, idColumn, type TableOptions, timeColumn } from './table.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

const ISSUED = routeOptions(issueAttestation, {
  roles: ['--role <role>', 'role of the subject'],
  validity_hours: ['--validity-hours <n>', 'how long it is valid'],
  subject_public_key: ['--subject-key <key>', 'public key of the subject', publicKey],
  claims: ['--claims <json>', 'claims about the subject'],
  issuer_sovereign_id: ['--issuer <name>', "issuing sovereign (default: the authority's)"],
});

const REVOKED = routeOptions(revokeAttestation, {
  reason: ['--reason <text>', 'reason for the revocation'],
});

const LISTED = routeOptions(listAttestations, {
  issuer_sovereign_id: ['--issuer <name>', 'only attestations of this sovereign'],
  subject_id: ['--subject <id>', 'only attestations of this subject'],
  // An authority stores no suspended ones.
  status: statusOption(['active', 'revoked']),
});

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
    .action(runIssue);
  addOperatorOptions(addOutOption(ISSUED.addTo(issue), 'the signed attestation'), [
    'mesh-na attestation issue agent-7 --role role:client --out agent-7.json',
    `mesh-na attestation issue agent-7 --role role:client --claims '{"tier":"gold"}'`,
  ]);
}

function defineRevoke(revoke: Command): void {
  revoke
    .description('revoke an attestation and add it to the revocation feed (privileged)')
    .argument('<attestation-id>', 'attestation id, or at least its first 8 characters')
    .action(runRevoke);
  addOperatorOptions(REVOKED.addTo(revoke), [
    'mesh-na attestation revoke 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason "left the team"',
  ]);
}

function defineList(list: Command): void {
  list.description('list the attestations of the authority, oldest first').action(runList);
  addPublicOptions(addWideOption(LISTED.addTo(list)), [
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

async function runIssue(
  subjectId: string,
  options: OperatorOptions & RecordOptions,
): Promise<void> {
  const attestation = await operatorClient(options).issueAttestation({
    subject_id: subjectId,
    ...ISSUED.sentIn(options),
  });
  const { attestation_id, subject_id } = attestation;
  showRecord(options, attestation, `Attestation ${attestation_id} is issued to ${subject_id}`, [
    `Issuer: ${attestation.issuer_sovereign_id}. Roles: ${attestation.roles.join(', ')}. Expires: ${attestation.expires_at}.`,
  ]);
}

async function runRevoke(given: string, options: OperatorOptions): Promise<void> {
  const pages = pagesOf(
    (page) => publicClient(options).listAttestations(page),
    ({ attestations }) => attestations,
  );
  const ids = eachOf('Attestations', pages, ({ attestation }) => attestation.attestation_id);
  const id = await wholeId(given, 'attestation', ids);
  const revoked = await operatorClient(options).revokeAttestation({
    attestation_id: id,
    ...REVOKED.sentIn(options),
  });
  const text = revoked.already_revoked ? 'was already revoked' : 'is revoked';
  printResult(options, revoked, [`Attestation ${id} ${text}.`]);
}

async function runList(options: PublicOptions & TableOptions): Promise<void> {
  const client = publicClient(options);
  const filters = LISTED.sentIn(options);
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
