/** `mesh-na recognition-policy`: sets and shows whose attestations this sovereign accepts. */
import type { Command } from 'commander';
import type { RecognitionPolicy } from '../../protocol/records/recognition-policy.ts';
import { routeCommand } from '../connection/route-command.ts';
import { showDocument, showRecord } from '../kernel/deliver.ts';
import type { Line } from '../kernel/output.ts';
import { type Column, column, tableOf } from '../kernel/table.ts';

export function addRecognitionPolicyCommands(program: Command): void {
  const policy = program
    .command('recognition-policy')
    .description('set or show whose attestations this sovereign accepts');

  routeCommand(policy.command('set'), 'setRecognitionPolicy', {
    about: 'replace the recognition policy (privileged)',
    files: { recognition_policy: ['<file>', 'JSON with the policy, - for standard input'] },
    out: 'the active policy',
    examples: ['mesh-na recognition-policy set recognition.json'],
    show(options, saved) {
      const made = `Recognition policy ${saved.policy_id} of ${saved.local_sovereign_id} is active`;
      showRecord(options, saved, made, []);
    },
  });

  routeCommand(policy.command('show'), 'readRecognitionPolicy', {
    about: 'show the recognition policy; exit code 4 if there is none',
    out: 'the policy',
    examples: [
      'mesh-na recognition-policy show',
      'mesh-na recognition-policy show --out recognition.json',
    ],
    show(options, shown) {
      const name = `The recognition policy of ${shown.local_sovereign_id}`;
      showDocument(options, shown, name, policyText(shown));
    },
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
