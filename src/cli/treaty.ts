/** `mesh-na treaty`: recognition of other sovereigns. */
import { type Command, Option } from 'commander';
import type { Sent } from '../client/operations.ts';
import { issueTreaty, listTreaties, revokeTreaty } from '../protocol/api/treaties.ts';
import { verifyTreaty } from '../protocol/api/verifications.ts';
import { usageFailure } from './exit-codes.ts';
import { readJsonFile } from './json-file.ts';
import { printList } from './listing.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { addPublicOptions, collect, type PublicOptions, signerKeyOption } from './options.ts';
import { printResult, printVerdict } from './output.ts';
import { addOutOption, type RecordOptions, showRecord } from './record-output.ts';
import { routeOptions } from './route-options.ts';
import { publicClient } from './server.ts';
import { addWideOption, column, idColumn, type TableOptions, timeColumn } from './table.ts';
import { addFollowCommand } from './treaty-follow.ts';
import { treatyPages, wholeTreatyId } from './treaty-pages.ts';
import { addVerificationOptions, type VerificationOptions, verifierOf } from './verification.ts';

const ISSUED = routeOptions(issueTreaty, {
  subject_public_keys: ['--key <key>', 'public key of the sovereign'],
  validity_hours: ['--validity-hours <n>', 'how long it is valid'],
  metadata: ['--metadata <json>', 'free-form metadata'],
  issuer_sovereign_id: ['--issuer <name>', "issuing sovereign (default: the authority's)"],
});

const REVOKED = routeOptions(revokeTreaty, {
  reason: ['--reason <text>', 'reason; renewed_by:<id> or replaced_by:<id> names the successor'],
});

const LISTED = routeOptions(listTreaties, {
  issuer_sovereign_id: ['--issuer <name>', 'only treaties that this sovereign issued'],
  subject_sovereign_id: ['--subject <name>', 'only treaties that recognize this sovereign'],
  status: ['--status <status>', 'only those with this status'],
});

const VERIFIED = routeOptions(verifyTreaty, {
  issuer_public_keys: signerKeyOption('--issuer-key'),
  expected_issuer_sovereign_id: [
    '--expect-issuer <name>',
    'reject it unless this sovereign issued it',
  ],
  expected_subject_sovereign_id: [
    '--expect-subject <name>',
    'reject it unless it recognizes this sovereign',
  ],
});

export function addTreatyCommands(program: Command): void {
  const treaty = program.command('treaty').description('recognize other sovereigns');

  const issue = treaty
    .command('issue')
    .description('sign a treaty that recognizes a sovereign (privileged)')
    .argument('<subject-sovereign>', 'sovereign to recognize')
    .option('--role <role>', 'role it may attest (repeatable)', collect)
    .addOption(new Option('--any-role', 'it may attest any role').conflicts('role'))
    .option('--scope <file>', 'JSON with the scope, - for standard input; --role overrides it')
    .action(runIssue);
  addOperatorOptions(addOutOption(ISSUED.addTo(issue), 'the signed treaty'), [
    'mesh-na treaty issue beta --key "$BETA_KEY" --role role:client --out alpha-beta.json',
  ]);

  const revoke = treaty
    .command('revoke')
    .description('revoke a treaty (privileged)')
    .argument('<treaty-id>', 'treaty id, or at least its first 8 characters')
    .action(runRevoke);
  addOperatorOptions(REVOKED.addTo(revoke), [
    'mesh-na treaty revoke 7d0f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason "no longer needed"',
  ]);

  addFollowCommand(treaty);

  const list = treaty
    .command('list')
    .description('list the treaties of the authority, oldest first')
    .action(runList);
  addPublicOptions(addWideOption(LISTED.addTo(list)), [
    'mesh-na treaty list',
    'mesh-na treaty list --subject beta --json',
  ]);

  const verify = treaty
    .command('verify')
    .description('verify a treaty; exit code 4 if it is rejected')
    .argument('<file>', 'the signed treaty, - for standard input')
    .action(runVerify);
  addVerificationOptions(VERIFIED.addTo(verify), [
    'mesh-na treaty verify alpha-beta.json',
    'mesh-na treaty verify alpha-beta.json --offline --genesis genesis.json',
    'mesh-na treaty verify beta-alpha.json --issuer-key "$BETA_KEY" --expect-subject alpha',
  ]);
}

async function runRevoke(given: string, options: OperatorOptions): Promise<void> {
  const id = await wholeTreatyId(publicClient(options), given);
  const revoked = await operatorClient(options).revokeTreaty({
    treaty_id: id,
    ...REVOKED.sentIn(options),
  });
  printResult(options, revoked, [`Treaty ${id} is revoked.`]);
}

async function runList(options: PublicOptions & TableOptions): Promise<void> {
  await printList(options, treatyPages(publicClient(options), LISTED.sentIn(options)), {
    member: 'recognition_treaties',
    columns: [
      idColumn('TREATY', ({ treaty }) => treaty.treaty_id),
      column('ISSUER', ({ treaty }) => treaty.issuer_sovereign_id, 2),
      column('SUBJECT', ({ treaty }) => treaty.subject_sovereign_id),
      column('ROLES', ({ treaty }) => treaty.scope.allowed_roles.join(',') || 'any', 3),
      column('STATE', ({ lifecycle }) => lifecycle.state, 5),
      timeColumn('EXPIRES', ({ treaty }) => treaty.expires_at, 4),
      column('REASON', ({ lifecycle }) => lifecycle.revocation_reason, 1),
    ],
    none: 'No treaties.',
  });
}

/** `treaty verify`. */
async function runVerify(file: string, options: VerificationOptions): Promise<void> {
  const verdict = await (await verifierOf(options)).verifyTreaty({
    treaty: await readJsonFile(file),
    ...VERIFIED.sentIn(options),
  });
  const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = verdict;
  const parties = `${issuer_sovereign_id} recognizes ${subject_sovereign_id}`;
  printVerdict(options, verdict, `treaty ${treaty_id}, ${parties}`);
}

interface IssueOptions extends OperatorOptions, RecordOptions {
  readonly role?: readonly string[];
  readonly anyRole?: boolean;
  readonly scope?: string;
}

type Scope = Sent<'issueTreaty'>['scope'];

/** `treaty issue`. */
async function runIssue(subject: string, options: IssueOptions): Promise<void> {
  const scope = await scopeOf(options);
  const treaty = await operatorClient(options).issueTreaty({
    subject_sovereign_id: subject,
    scope,
    ...ISSUED.sentIn(options),
  });
  const roles = treaty.scope.allowed_roles.join(', ') || 'any';
  showRecord(options, treaty, `Treaty ${treaty.treaty_id} is issued`, [
    `${treaty.issuer_sovereign_id} recognizes ${treaty.subject_sovereign_id}. Roles: ${roles}. Expires: ${treaty.expires_at}.`,
  ]);
}

/** The authority validates the members of the file. */
async function scopeOf({ role, anyRole, scope }: IssueOptions): Promise<Scope> {
  const members = scope === undefined ? {} : await readJsonFile(scope);
  const allowed_roles = anyRole ? [] : (role ?? members.allowed_roles);
  const isAny = allowed_roles === undefined || isEmpty(allowed_roles);
  if (isAny && !anyRole) {
    throw usageFailure('Give each --role that it may attest, or --any-role');
  }
  return { ...members, allowed_roles } as Scope;
}

/** On the wire, no role stands for any. */
function isEmpty(roles: unknown): boolean {
  return roles === null || (Array.isArray(roles) && roles.length === 0);
}
