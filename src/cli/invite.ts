/** `mesh-na invite`: lets nodes in, and says who was let in or may still come. */
import { type Command, Option } from 'commander';
import type { Invite } from '../answers/operators.ts';
import type { OperatorClient } from '../client/operator-client.ts';
import { INVITE_STATUSES, type InviteRow, type InviteStatus } from '../views/rows/invite.ts';
import { eachOf, pagesOf, printList } from './listing.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { collect, publicKey, wholeNumber } from './options.ts';
import { asJson, printLines, printNote, printResult } from './output.ts';
import { printable, printableJson } from './printable.ts';
import { addOutOption, type OutOptions, saveText } from './record-output.ts';
import { wholeFingerprint } from './short-id.ts';
import { addWideOption, idColumn, type TableOptions, timeColumn } from './table.ts';

const FINGERPRINT_LENGTH = 16;

interface InviteOptions extends OperatorOptions, OutOptions {
  readonly role?: readonly string[];
  readonly maxValidityHours?: number;
  readonly tokenExpiryHours?: number;
  readonly count?: number;
  readonly recipient?: string;
}

interface ListOptions extends OperatorOptions, TableOptions {
  readonly status?: InviteStatus;
}

export function addInviteCommands(program: Command): void {
  const invite = program.command('invite').description('invite nodes to the network');

  const create = invite
    .command('create')
    .description('make a single-use invite token; it is printed once and shown nowhere else')
    .option('--role <role>', 'role of the node (repeatable; default: role:client)', collect)
    .option('--max-validity-hours <n>', 'longest certificate (default: 168)', wholeNumber())
    .option('--token-expiry-hours <n>', 'lifetime of the token (default: 24)', wholeNumber())
    .option('--count <n>', 'make this many tokens in one request', wholeNumber())
    .option('--recipient <public-key>', 'bind the invite to this node key', publicKey)
    .action(runCreate);
  addOperatorOptions(addOutOption(create, 'the tokens, one a line,'), [
    'mesh-na invite create --role role:client --out token',
    'mesh-na invite create --role role:anchor --role role:bridge --max-validity-hours 72 --json',
  ]);

  const list = invite
    .command('list')
    .description('list the invites, by fingerprint and without their tokens (standard)')
    .addOption(
      new Option('--status <status>', 'only those with this status').choices(INVITE_STATUSES),
    )
    .action(runList);
  addOperatorOptions(addWideOption(list), ['mesh-na invite list --status unused']);

  const withdraw = invite
    .command('withdraw')
    .description('withdraw an invite that was not used (standard)')
    .argument(
      '<fingerprint>',
      'of its token, as invite list shows it, or its first 8 characters or more',
    )
    .action(runWithdraw);
  addOperatorOptions(withdraw, ['mesh-na invite withdraw 5f3c2b1a00de9c4e']);
}

async function runList(options: ListOptions): Promise<void> {
  await printList(options, invitePages(operatorClient(options), options), {
    member: 'invites',
    columns: [
      idColumn('INVITE'),
      'STATUS',
      { title: 'ROLES', rank: 4 },
      timeColumn('CREATED', 2),
      timeColumn('EXPIRES', 5),
      idColumn('RECIPIENT', 1),
      idColumn('ENDED BY', 3),
    ],
    cells: cellsOf,
    none: 'No invites.',
  });
}

function invitePages(client: OperatorClient, { status }: { readonly status?: InviteStatus }) {
  return pagesOf(
    (page) => client.invites({ ...(status !== undefined && { status }), ...page }),
    ({ invites }) => invites,
  );
}

function cellsOf(row: InviteRow): string[] {
  return [
    row.token_fingerprint,
    row.status,
    row.roles.join(','),
    row.created_at,
    row.expires_at,
    row.recipient_public_key ?? '',
    row.used_by ?? row.withdrawn_by ?? '',
  ];
}

async function runWithdraw(given: string, options: OperatorOptions): Promise<void> {
  const client = operatorClient(options);
  const all = eachOf('Invites', invitePages(client, {}), (row) => row.token_fingerprint);
  const fingerprint = await wholeFingerprint(given, 'invite', FINGERPRINT_LENGTH, all);
  const withdrawn = await client.withdrawInvite(fingerprint);
  const text = withdrawn.already_withdrawn ? 'was withdrawn before' : 'is withdrawn';
  printResult(options, asJson(withdrawn), [`Invite ${fingerprint} ${text}.`]);
}

async function runCreate(options: InviteOptions): Promise<void> {
  const { role, maxValidityHours, tokenExpiryHours, count, recipient } = options;
  const invite = await operatorClient(options).invite({
    ...(role && { roles: role }),
    ...(maxValidityHours && { max_validity_hours: maxValidityHours }),
    ...(tokenExpiryHours && { token_expiry_hours: tokenExpiryHours }),
    ...(count && { count }),
    ...(recipient !== undefined && { recipient_public_key: recipient }),
  });
  deliverTokens(options, invite);
}

/** Tokens are secrets: they go where they are wanted and nowhere else, and words about them to stderr. */
function deliverTokens(options: InviteOptions, invite: Invite): void {
  const { tokens = [invite], expires_at } = invite;
  const lines = tokens.map(({ token_id }) => token_id);
  const isSaved = saveText(options, `${lines.join('\n')}\n`, {
    made: 'The invite is made',
    isSecret: true,
    ...(options.json && { fallback: printableJson(asJson(invite)) }),
  });
  if (options.json) {
    printResult(options, asJson(invite), []);
    return;
  }
  if (!isSaved) printLines(lines.map(printable));
  printNote(`Each token admits one node until ${expires_at} and is not shown again.`);
  const file = isSaved && tokens.length === 1 ? options.out : '<file with the token>';
  printNote(`On the node: mesh-na node join --root-key <root key> --token-file ${file}`);
}
