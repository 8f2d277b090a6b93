/** `mesh-na recognition-policy`: sets and shows whose attestations this sovereign accepts. */

import type { Command } from 'commander';
import type { RecognitionPolicy } from '../../protocol/records/recognition-policy.ts';
import { routeCommand } from '../connection/route-command.ts';
import { documentOf, shown } from '../kernel/deliver.ts';
import type { Line } from '../kernel/output.ts';
import { type Column, column, tableOf } from '../kernel/table.ts';

export function addRecognitionPolicyCommands(program: Command): void {
  const policy = program
    .command('recognition-policy')
    .description('set or show whose attestations this sovereign accepts');

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
