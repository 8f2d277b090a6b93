/** `mesh-na recognition-policy`: sets and shows whose attestations this sovereign accepts. */
import type { Command } from 'commander';
import type { RecognitionPolicy } from '../protocol/records/recognition-policy.ts';
import { readJsonFile } from './json-file.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { addPublicOptions, type PublicOptions } from './options.ts';
import type { Line } from './printable.ts';
import { addOutOption, type RecordOptions, showDocument, showRecord } from './record-output.ts';
import { publicClient } from './server.ts';
import { type Column, column, tableOf } from './table.ts';

export function addRecognitionPolicyCommands(program: Command): void {
  const policy = program
    .command('recognition-policy')
    .description('set or show whose attestations this sovereign accepts');

  const set = policy
    .command('set')
    .description('replace the recognition policy (privileged)')
    .argument('<file>', 'JSON with the policy, - for standard input')
    .action(runSet);
  addOperatorOptions(addOutOption(set, 'the active policy'), [
    'mesh-na recognition-policy set recognition.json',
  ]);

  const show = policy
    .command('show')
    .description('show the recognition policy; exit code 4 if there is none')
    .action(runShow);
  addPublicOptions(addOutOption(show, 'the policy'), [
    'mesh-na recognition-policy show',
    'mesh-na recognition-policy show --out recognition.json',
  ]);
}

async function runSet(file: string, options: OperatorOptions & RecordOptions): Promise<void> {
  const recognition_policy = await readJsonFile(file);
  const saved = await operatorClient(options).setRecognitionPolicy({ recognition_policy });
  const made = `Recognition policy ${saved.policy_id} of ${saved.local_sovereign_id} is active`;
  showRecord(options, saved, made, []);
}

async function runShow(options: PublicOptions & RecordOptions): Promise<void> {
  const policy = await publicClient(options).readRecognitionPolicy();
  const name = `The recognition policy of ${policy.local_sovereign_id}`;
  showDocument(options, policy, name, policyText(policy));
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
