/** `mesh-na treaty`: recognition of other sovereigns. */
import { type Command, Option } from 'commander';
import type { Sent } from '../../client/operations.ts';
import type { OperatorOptions } from '../connection/operator.ts';
import { listCommand, routeCommand } from '../connection/route-command.ts';
import { publicClient } from '../connection/server.ts';
import { showRecord } from '../kernel/deliver.ts';
import { usageFailure } from '../kernel/errors.ts';
import { readJsonFile } from '../kernel/json-file.ts';
import { collect, signerKeyOption } from '../kernel/options.ts';
import { printResult } from '../kernel/output.ts';
import { column, idColumn, timeColumn } from '../kernel/table.ts';
import { verifyCommand } from '../protocol/verification.ts';
import { addFollowCommand } from './follow.ts';
import { wholeTreatyId } from './treaty-pages.ts';

export function addTreatyCommands(program: Command): void {
  const treaty = program.command('treaty').description('recognize other sovereigns');

  routeCommand(treaty.command('issue'), 'issueTreaty', {
    about: 'sign a treaty that recognizes a sovereign (privileged)',
    values: {
      subject_sovereign_id: ['<subject-sovereign>', 'sovereign to recognize'],
      subject_public_keys: ['--key <key>', 'public key of the sovereign'],
      validity_hours: ['--validity-hours <n>', 'how long it is valid'],
      metadata: ['--metadata <json>', 'free-form metadata'],
      issuer_sovereign_id: ['--issuer <name>', "issuing sovereign (default: the authority's)"],
    },
    more: (command) =>
      command
        .option('--role <role>', 'role it may attest (repeatable)', collect)
        .addOption(new Option('--any-role', 'it may attest any role').conflicts('role'))
        .option('--scope <file>', 'JSON with the scope, - for standard input; --role overrides it'),
    out: 'the signed treaty',
    examples: [
      'mesh-na treaty issue beta --key "$BETA_KEY" --role role:client --out alpha-beta.json',
    ],
    sent: async (given, options: ScopeOptions) => ({ ...given, scope: await scopeOf(options) }),
    show(options, issued) {
      const roles = issued.scope.allowed_roles.join(', ') || 'any';
      showRecord(options, issued, `Treaty ${issued.treaty_id} is issued`, [
        `${issued.issuer_sovereign_id} recognizes ${issued.subject_sovereign_id}. Roles: ${roles}. Expires: ${issued.expires_at}.`,
      ]);
    },
  });

  routeCommand(treaty.command('revoke'), 'revokeTreaty', {
    about: 'revoke a treaty (privileged)',
    values: {
      treaty_id: ['<treaty-id>', 'treaty id, or at least its first 8 characters'],
      reason: [
        '--reason <text>',
        'reason; renewed_by:<id> or replaced_by:<id> names the successor',
      ],
    },
    examples: [
      'mesh-na treaty revoke 7d0f6e0c-8a51-4f0e-9a53-6f5d3c2b1a00 --reason "no longer needed"',
    ],
    sent: async (given, options: OperatorOptions) => ({
      ...given,
      treaty_id: await wholeTreatyId(publicClient(options), given.treaty_id),
    }),
    show: (options, revoked, { treaty_id }) =>
      printResult(options, revoked, [`Treaty ${treaty_id} is revoked.`]),
  });

  addFollowCommand(treaty);

  listCommand(treaty.command('list'), 'listTreaties', {
    about: 'list the treaties of the authority, oldest first',
    values: {
      issuer_sovereign_id: ['--issuer <name>', 'only treaties that this sovereign issued'],
      subject_sovereign_id: ['--subject <name>', 'only treaties that recognize this sovereign'],
      status: ['--status <status>', 'only those with this status'],
    },
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
    examples: ['mesh-na treaty list', 'mesh-na treaty list --subject beta --json'],
  });

  verifyCommand(treaty.command('verify'), 'verifyTreaty', {
    about: 'verify a treaty; exit code 4 if it is rejected',
    files: { treaty: ['<file>', 'the signed treaty, - for standard input'] },
    values: {
      issuer_public_keys: signerKeyOption('--issuer-key'),
      expected_issuer_sovereign_id: [
        '--expect-issuer <name>',
        'reject it unless this sovereign issued it',
      ],
      expected_subject_sovereign_id: [
        '--expect-subject <name>',
        'reject it unless it recognizes this sovereign',
      ],
    },
    examples: [
      'mesh-na treaty verify alpha-beta.json',
      'mesh-na treaty verify alpha-beta.json --offline --genesis genesis.json',
      'mesh-na treaty verify beta-alpha.json --issuer-key "$BETA_KEY" --expect-subject alpha',
    ],
    finding: ({ treaty_id, issuer_sovereign_id: issuer, subject_sovereign_id: subject }) => ({
      what: `treaty ${treaty_id}, ${issuer} recognizes ${subject}`,
    }),
  });
}

interface ScopeOptions {
  readonly role?: readonly string[];
  readonly anyRole?: boolean;
  readonly scope?: string;
}

type Scope = Sent<'issueTreaty'>['scope'];

/** The authority validates the members of the file. */
async function scopeOf({ role, anyRole, scope }: ScopeOptions): Promise<Scope> {
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
