/** `mesh-na invite`: creates, lists and withdraws invites for nodes. */

import { type Command, InvalidArgumentError } from 'commander';
import { counted } from '../../base/counts.ts';
import { pagesOf } from '../../client/operations.ts';
import type { OperatorClient } from '../../client/operator-client.ts';
import type { Invite } from '../../protocol/answers/operators.ts';
import { type InviteRow, isBatchLabel, joinCommand } from '../../protocol/rows/invite.ts';
import {
  introduction,
  OPERATOR,
  type OperatorOptions,
  operatorClient,
} from '../connection/operator.ts';
import { listCommand, resolveId, routeCommand } from '../connection/route-command.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { type RecordOptions, saveText } from '../kernel/deliver.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';
import { idArgument } from '../kernel/ids.ts';
import { rowsOf } from '../kernel/list.ts';
import { wholeNumber } from '../kernel/options.ts';
import {
  asJson,
  printable,
  printableJson,
  printLines,
  printNote,
  printResult,
} from '../kernel/output.ts';
import { type Column, column, idColumn, timeColumn } from '../kernel/table.ts';
import { assertMeant, type Many, printDryRun, printPart } from '../kernel/terminal.ts';
import {
  descriptionColumns,
  labelFilter,
  labelOption,
  nameFilter,
  nodeName,
  noticeTaken,
} from './descriptions.ts';

const WITHDRAW = [
  option('--batch <label>', 'instead, withdraw the unused invites of this batch', {
    parse: batchLabel,
  }),
  option(
    '--dry-run',
    'show which invites of the batch would be withdrawn without changing anything',
  ),
  option(
    '--yes-withdraw <n>',
    'withdraw the batch if it has exactly this many unused invites; otherwise you are asked for the number',
    { parse: wholeNumber() },
  ),
  WIDE,
] as const;

type WithdrawOptions = OptionsIn<typeof WITHDRAW> & OperatorOptions;

const COLUMNS: readonly Column<InviteRow>[] = [
  idColumn('INVITE', (row) => row.token_fingerprint),
  column('STATUS', (row) => row.status),
  ...descriptionColumns<InviteRow>((row) => row),
  column('BATCH', (row) => row.batch, 4),
  column('ROLES', (row) => row.roles.join(','), 5),
  timeColumn('CREATED', (row) => row.created_at, 2),
  timeColumn('EXPIRES', (row) => row.expires_at, 6),
  idColumn('RECIPIENT', (row) => row.recipient_public_key, 1),
  idColumn('ENDED BY', (row) => row.used_by ?? row.withdrawn_by, 3),
];

const WITHDRAWN: Many<InviteRow> = {
  noun: 'invite',
  verb: 'withdraw',
  done: 'withdrawn',
  columns: COLUMNS,
};

export function addInviteCommands(invite: Command): void {
  routeCommand(invite, 'create', 'createInvites', {
    about: 'create a single-use invite token; it is shown only once',
    values: {
      roles: ['--role <role>', 'role of the node'],
      max_validity_hours: ['--max-validity-hours <n>', 'maximum validity of the certificate'],
      token_expiry_hours: ['--token-expiry-hours <n>', 'lifetime of the token'],
      count: ['--count <n>', 'create this many tokens in one request'],
      recipient_public_key: ['--recipient <public-key>', 'bind the invite to this node key'],
      batch: ['--batch <label>', 'label for listing and withdrawing the invites', batchLabel],
      name: ['--name <name>', 'name for the node; {n} becomes the number of the token', nodeName],
      labels: labelOption('label for the node (repeatable)'),
    },
    out: 'the tokens, one per line,',
    examples: [
      'mesh-na invite create --role role:client --out token',
      'mesh-na invite create --role role:anchor --role role:bridge --max-validity-hours 72 --json',
      'mesh-na invite create --count 500 --batch field-team-7 --out tokens',
      "mesh-na invite create --count 20 --name 'web-{n}' --label env=prod --out tokens",
    ],
    show: (invite, { name }, options) =>
      deliverTokens(options, invite, name?.replace('{n}', '*') ?? null),
  });

  listCommand(invite, 'list', 'listInvites', {
    about: 'list the invites by fingerprint, without their tokens (standard)',
    values: {
      status: ['--status <status>', 'only those with this status'],
      batch: ['--batch <label>', 'only invites of this batch', batchLabel],
      name: nameFilter(),
      label: labelFilter(),
    },
    isSorted: true,
    columns: COLUMNS,
    none: 'No invites.',
    examples: [
      'mesh-na invite list --sort expires --limit 20',
      'mesh-na invite list --status unused',
    ],
  });

  define(invite, 'withdraw', {
    about: 'withdraw an unused invite, or all unused invites of a batch (standard)',
    asks: OPERATOR,
    args: [idArgument('invite', { isOptional: true })],
    options: WITHDRAW,
    examples: [
      'mesh-na invite withdraw 5f3c2b1a00de9c4e',
      'mesh-na invite withdraw --batch field-team-7 --dry-run',
    ],
    run: runWithdraw,
  });
}

async function runWithdraw(
  options: WithdrawOptions,
  [given]: readonly (string | undefined)[],
): Promise<void> {
  const { batch, dryRun, yesWithdraw } = options;
  const client = operatorClient(options);
  if (batch !== undefined && given === undefined) return withdrawBatch(client, batch, options);
  if (batch !== undefined || given === undefined) {
    throw usageFailure('Give one invite, or a batch with --batch');
  }
  if (dryRun || yesWithdraw !== undefined) {
    throw usageFailure('--dry-run and --yes-withdraw need --batch: nothing was withdrawn');
  }
  const fingerprint = await resolveId(options, 'invite', given);
  const withdrawn = await client.withdrawInvite({ fingerprint });
  const text = withdrawn.already_withdrawn ? 'was already withdrawn' : 'is withdrawn';
  printResult(options, asJson(withdrawn), [`Invite ${fingerprint} ${text}.`]);
}

/** With one request. */
const MOST_WITHDRAWN = 1000;

async function withdrawBatch(
  client: OperatorClient,
  batch: string,
  options: WithdrawOptions,
): Promise<void> {
  const all = await rowsOf(
    'Invites',
    pagesOf(
      (page) => client.listInvites({ batch, ...page }),
      ({ invites }) => invites,
    ),
  );
  if (all.length === 0) {
    throw failure(EXIT.refused, 'batch_not_found', `There is no invite in the batch ${batch}`);
  }
  const rows = all.filter(({ status }) => status === 'unused' || status === 'expired');
  if (options.dryRun) return printDryRun(WITHDRAWN, rows, options);
  await assertMeant(WITHDRAWN, rows, options.yesWithdraw, options);
  const fingerprints = rows.map(({ token_fingerprint }) => token_fingerprint);
  let withdrawn = 0;
  for (let start = 0; start < rows.length; start += MOST_WITHDRAWN) {
    try {
      // Others may have joined the batch since these were shown.
      const shown = fingerprints.slice(start, start + MOST_WITHDRAWN);
      const answer = await client.withdrawInviteBatch({ batch, fingerprints: shown });
      withdrawn += answer.withdrawn;
    } catch (error) {
      printPart(options, { batch, withdrawn }, `Withdrew ${withdrawn} of ${rows.length} invites`);
      throw error;
    }
  }
  printResult(options, { batch, withdrawn }, [`${counted(withdrawn, 'invite')} withdrawn.`]);
}

function batchLabel(text: string): string {
  if (isBatchLabel(text)) return text;
  throw new InvalidArgumentError(
    'It must be 1 to 64 printable ASCII characters without a blank at either end.',
  );
}

/** Tokens are secrets, so they go only to the requested place; notes go to stderr. */
async function deliverTokens(
  options: OperatorOptions & RecordOptions,
  invite: Invite,
  /** Of the names that the tokens give. */
  pattern: string | null,
): Promise<void> {
  const { tokens = [invite], expires_at } = invite;
  const lines = tokens.map(({ token_id }) => token_id);
  const isSaved = saveText(options, `${lines.join('\n')}\n`, {
    made: 'Invite created',
    isSecret: true,
    ...(options.json && { fallback: printableJson(asJson(invite)) }),
  });
  if (options.json) {
    printResult(options, asJson(invite), []);
    return;
  }
  if (!isSaved) printLines(lines.map(printable));
  printNote(`Each token admits one node until ${expires_at} and is not shown again.`);
  const [first, last] = [tokens[0]?.name, tokens.at(-1)?.name];
  if (first !== undefined && first !== last) {
    printNote(`In this order, they name their nodes ${first} to ${last}.`);
  }
  if (pattern !== null) {
    const names = new Set(tokens.map(({ name }) => name));
    await noticeTaken(operatorClient(options), pattern, ({ name }) => names.has(name));
  }
  const file = isSaved && tokens.length === 1 ? options.out : '<file with the token>';
  const { url, rootKey } = await introduction(options);
  printNote(`On the node: ${joinCommand(url, rootKey, file ?? '')}`);
}
