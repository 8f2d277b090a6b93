/** Signed evidence of membership: `mesh-na attestation`, the `feed` of those revoked, and the `recognition-policy`. */

import type { Command } from 'commander';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { counted } from '../../base/counts.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { AuthorityError } from '../../client/authority-error.ts';
import type { RecognitionPolicy } from '../../protocol/records/recognition.ts';
import { listCommand, routeCommand } from '../connection/route-command.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { documentOf, shown } from '../kernel/deliver.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';
import { readJsonFile, readRecordFile } from '../kernel/files.ts';
import { namedKey, publicKey } from '../kernel/options.ts';
import { type Line, printVerdict } from '../kernel/output.ts';
import { type Column, column, idColumn, tableOf, timeColumn } from '../kernel/table.ts';
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

export function addAttestationCommands(attestation: Command): void {
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

const NO_POLICY =
  'Give the --treaty or the --policy to verify it by, or set one with mesh-na recognition-policy set.';

async function verifyByPolicy(
  attestation: JsonObject,
  options: VerificationOptions,
  policy: string | undefined,
): Promise<void> {
  const verifier = await verifierOf(options);
  const verdict = await verifier
    .verifyAttestation({
      attestation,
      ...(policy !== undefined && { recognition_policy: await readJsonFile(policy) }),
    })
    .catch((error: unknown) => {
      throw error instanceof AuthorityError && error.code === 'missing_recognition_policy'
        ? failure(EXIT.refused, error.code, 'The authority has no recognition policy', NO_POLICY)
        : error;
    });
  const { attestation_id, issuer_sovereign_id } = verdict;
  printVerdict(options, verdict, `attestation ${attestation_id} of ${issuer_sovereign_id}`);
}

export function addFeedCommands(feed: Command): void {
  routeCommand(feed, 'export', 'readRevocationFeed', {
    about: 'print the signed revocation feed of the authority, or save it',
    values: {
      issuer_sovereign_id: ['--issuer <name>', "feed of this sovereign (default: the authority's)"],
    },
    out: 'the feed',
    examples: [
      'mesh-na feed export --out alpha-feed.json',
      'mesh-na feed export --url https://na.beta.example | mesh-na feed import -',
    ],
    record: ({ feed_id, issuer_sovereign_id, sequence, revoked_attestation_ids }) => ({
      made: `Feed ${feed_id} of ${issuer_sovereign_id} is exported`,
      about: `Sequence: ${sequence}. ${counted(revoked_attestation_ids.length, 'attestation')} revoked.`,
    }),
  });

  routeCommand(feed, 'import', 'importFeed', {
    about: 'import the revocations of another sovereign (privileged)',
    values: {
      expected_issuer_sovereign_id: [
        '--expect-issuer <name>',
        'reject the feed unless this sovereign issued it',
      ],
    },
    args: [['<file>', 'the signed feed, - for standard input']],
    options: [
      option(
        '--issuer-key <key>',
        'key that must have signed the feed, as key or id=key (repeatable; default: keys in active treaties)',
        { parse: namedKey, many: true },
      ),
    ],
    examples: [
      'mesh-na feed import beta-feed.json --expect-issuer beta',
      'mesh-na feed import beta-feed.json --issuer-key beta-na="$BETA_KEY"',
    ],
    sent: async (given, { issuerKey }, [file = '']) => ({
      ...given,
      issuer_public_keys: issuerKey && issuerKeys(issuerKey),
      feed: await readRecordFile('feed', file, MOST_BYTES.list),
    }),
    text({ accepted, feed_id, issuer_sovereign_id, sequence, revoked_count, reason }) {
      if (!accepted) {
        throw failure(EXIT.refused, reason, `The authority refused the feed: ${reason}`);
      }
      return [
        `Feed ${feed_id} of ${issuer_sovereign_id} is imported.`,
        `Sequence: ${sequence}. ${counted(revoked_count, 'attestation')} revoked.`,
      ];
    },
  });
}

/** An object when the keys have ids, else a list; authorities accept both. */
function issuerKeys(keys: readonly ReturnType<typeof namedKey>[]) {
  const ids = new Set(keys.map(({ id }) => id));
  if (ids.size === 1 && ids.has(null)) return keys.map(({ key }) => key);
  if (ids.has(null)) throw usageFailure('Give an id to either all --issuer-key options or none');
  if (ids.size < keys.length) throw usageFailure('Two --issuer-key options have the same id');
  return Object.fromEntries(keys.map(({ id, key }) => [String(id), key]));
}

export function addRecognitionPolicyCommands(policy: Command): void {
  routeCommand(policy, 'set', 'setRecognitionPolicy', {
    about: 'replace the recognition policy (privileged)',
    files: { recognition_policy: ['<file>', 'JSON with the policy, - for standard input'] },
    out: 'the active policy',
    examples: ['mesh-na recognition-policy set recognition.json'],
    record: ({ policy_id, local_sovereign_id: name }) =>
      shown(`Recognition policy ${policy_id} of ${name} is active`, []),
  });

  routeCommand(policy, 'show', 'readRecognitionPolicy', {
    about: 'show the recognition policy; exit code 4 if there is none',
    out: 'the policy',
    examples: [
      'mesh-na recognition-policy show',
      'mesh-na recognition-policy show --out recognition.json',
    ],
    record: (policy, _, options) =>
      documentOf(
        options,
        `The recognition policy of ${policy.local_sovereign_id}`,
        policyText(policy),
      ),
  });
}

const COLUMNS: readonly Column<RecognitionPolicy['recognized_issuers'][number]>[] = [
  column('ISSUER', (issuer) => issuer.sovereign_id),
  column('ROLES', (issuer) => issuer.allowed_roles.join(',') || 'any'),
  column('STATUSES', (issuer) => issuer.accepted_statuses.join(',')),
  { title: 'KEYS', holds: 'name', cell: (issuer) => issuer.public_keys.join(',') },
];

function policyText(policy: RecognitionPolicy): Line[] {
  const { recognized_issuers: issuers } = policy;
  return [
    `sovereign  ${policy.local_sovereign_id}`,
    `revoked    ${policy.revoked_attestation_ids.join(', ') || 'none'}`,
    '',
    ...(issuers.length === 0 ? ['No issuer is recognized.'] : tableOf(COLUMNS, issuers)),
  ];
}
