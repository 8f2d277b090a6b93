/** `mesh-na attestation`: signed evidence of membership. */

import type { Command } from 'commander';
import type { JsonObject } from '../../base/json/value.ts';
import { listCommand, routeCommand } from '../connection/route-command.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { shown } from '../kernel/deliver.ts';
import { usageFailure } from '../kernel/errors.ts';
import { readJsonFile, readRecordFile } from '../kernel/files.ts';
import { publicKey } from '../kernel/options.ts';
import { printVerdict } from '../kernel/output.ts';
import { column, idColumn, timeColumn } from '../kernel/table.ts';
import { VERIFIER, type VerificationOptions, verifierOf } from '../protocol/verification.ts';

const VERIFY = [
  option('--policy <file>', "recognition policy to apply (default: the authority's)"),
  option('--treaty <file>', 'treaty to apply', { conflicts: 'policy' }),
  option(
    '--treaty-key <key>',
    "key that must have signed the treaty (repeatable; default: the authority's)",
    { parse: publicKey, many: true },
  ),
  option('--feed <file>', 'revocation feed of the issuer; needed offline to check for revocation'),
] as const;

export function addAttestationCommands(program: Command): void {
  const attestation = program
    .command('attestation')
    .description('attest membership, and verify attestations of others');

  routeCommand(attestation, 'issue', 'issueAttestation', {
    about: 'issue signed evidence that a subject is a member (privileged)',
    values: {
      subject_id: ['<subject-id>', 'subject of the attestation'],
      roles: ['--role <role>', 'role of the subject'],
      validity_hours: ['--validity-hours <n>', 'how long it is valid'],
      subject_public_key: ['--subject-key <key>', 'public key of the subject', publicKey],
      claims: ['--claims <json>', 'claims about the subject'],
      issuer_sovereign_id: ['--issuer <name>', "issuing sovereign (default: the authority's)"],
    },
    out: 'the signed attestation',
    examples: [
      'mesh-na attestation issue agent-7 --role role:client --out agent-7.json',
      `mesh-na attestation issue agent-7 --role role:client --claims '{"tier":"gold"}'`,
    ],
    record({ attestation_id, subject_id, issuer_sovereign_id, roles, expires_at }) {
      return shown(`Attestation ${attestation_id} is issued to ${subject_id}`, [
        `Issuer: ${issuer_sovereign_id}. Roles: ${roles.join(', ')}. Expires: ${expires_at}.`,
      ]);
    },
  });

  routeCommand(attestation, 'revoke', 'revokeAttestation', {
    about: 'revoke an attestation and add it to the revocation feed (privileged)',
    values: {
      attestation_id: 'attestation',
      reason: ['--reason <text>', 'reason for the revocation'],
    },
    examples: [
      'mesh-na attestation revoke 5a1f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason "left the team"',
    ],
    text: ({ already_revoked }, { attestation_id }) => [
      `Attestation ${attestation_id} ${already_revoked ? 'was already revoked' : 'is revoked'}.`,
    ],
  });

  listCommand(attestation, 'list', 'listAttestations', {
    about: 'list the attestations of the authority, oldest first',
    values: {
      issuer_sovereign_id: ['--issuer <name>', 'only attestations of this sovereign'],
      subject_id: ['--subject <id>', 'only attestations of this subject'],
      // An authority stores no suspended ones.
      status: option('--status <status>', 'only those with this status', {
        choices: ['active', 'revoked'],
      }),
    },
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
    examples: [
      'mesh-na attestation list --subject agent-7',
      'mesh-na attestation list --status revoked --json',
    ],
  });

  define(attestation, 'verify', {
    about: 'verify an attestation; exit code 4 if it is rejected',
    asks: VERIFIER,
    args: [['<file>', 'the signed attestation, - for standard input']],
    options: VERIFY,
    examples: [
      'mesh-na attestation verify agent-7.json',
      'mesh-na attestation verify agent-7.json --policy recognition.json --offline',
      'mesh-na attestation verify agent-7.json --treaty alpha-beta.json && echo accepted',
    ],
    run: runVerify,
  });
}

async function runVerify(
  options: VerificationOptions & OptionsIn<typeof VERIFY>,
  [file = '']: readonly string[],
): Promise<void> {
  const { policy, treaty, treatyKey } = options;
  if (treatyKey !== undefined && treaty === undefined) {
    throw usageFailure('--treaty-key needs --treaty');
  }
  const attestation = await readRecordFile('attestation', file);
  if (treaty === undefined) return verifyByPolicy(attestation, options, policy);
  const verdict = await (await verifierOf(options)).verifyAttestationWithTreaty({
    attestation,
    treaty: await readRecordFile('treaty', treaty),
    ...(treatyKey && { treaty_issuer_public_keys: treatyKey }),
  });
  const { attestation_id, treaty_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} under treaty ${treaty_id}`);
}

async function verifyByPolicy(
  attestation: JsonObject,
  options: VerificationOptions,
  policy: string | undefined,
): Promise<void> {
  const verdict = await (await verifierOf(options)).verifyAttestation({
    attestation,
    ...(policy !== undefined && { recognition_policy: await readJsonFile(policy) }),
  });
  const { attestation_id, issuer_sovereign_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} of ${issuer_sovereign_id}`);
}
