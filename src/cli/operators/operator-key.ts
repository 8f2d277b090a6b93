/** `mesh-na operator-key`: creates and manages the keys of operators. */

import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { writeKeyFile } from '../../base/keys/key-file.ts';
import { readPublicKey } from '../../base/keys/public-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { keyFromSeed, newSeed } from '../../client/keys.ts';
import type { OperatorTier } from '../../client/operator-client.ts';
import type { OperatorKeyList } from '../../protocol/answers/operators.ts';
import { TIERS } from '../../protocol/rows/operator-key.ts';
import { routeCommand } from '../connection/route-command.ts';
import { onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { addLocalOptions, publicKey } from '../kernel/options.ts';
import { asJson, type OutputOptions, printResult } from '../kernel/output.ts';
import {
  addWideOption,
  type Column,
  column,
  type TableOptions,
  tableOf,
  timeColumn,
} from '../kernel/table.ts';

export function addOperatorKeyCommands(program: Command): void {
  const operatorKey = program
    .command('operator-key')
    .description('create, add, list and revoke operator keys');
  defineCreate(operatorKey.command('create'));

  routeCommand(operatorKey.command('add'), 'addOperatorKey', {
    about: 'add an operator key, effective immediately and permanently (privileged)',
    values: {
      key_id: ['<key-id>', 'id of the new operator key'],
      tier: ['--tier <tier>', 'tier of the key'],
    },
    more: (command) =>
      command
        .option('--public-key <key>', 'public key', publicKey)
        .option(
          '--public-key-file <file>',
          'file with the public key, from operator-key create or ssh-keygen',
        ),
    examples: ['mesh-na operator-key add ops-2 --public-key-file ops-2.pub --tier standard'],
    sent: (given, options: KeyOptions) => ({ ...given, public_key: givenPublicKey(options) }),
    show: (options, added, { key_id, tier }) =>
      printResult(options, asJson(added), [
        `Operator key ${key_id} is added, with the tier ${tier}.`,
      ]),
  });

  routeCommand(operatorKey.command('list'), 'listOperatorKeys', {
    about: 'list all operator keys, usable and revoked (standard)',
    more: addWideOption,
    examples: ['mesh-na operator-key list'],
    show: (options: TableOptions & OutputOptions, list) =>
      printResult(options, asJson(list), tableOf(COLUMNS, list.operator_keys, options)),
  });

  routeCommand(operatorKey.command('set-tier'), 'setOperatorKeyTier', {
    about: 'change the tier of an added operator key (privileged)',
    values: {
      key_id: ['<key-id>', 'operator key to change'],
      tier: ['<tier>', 'standard or privileged', oneTier],
    },
    examples: ['mesh-na operator-key set-tier ops-2 privileged'],
    show: (options, set, { key_id, tier }) =>
      printResult(options, asJson(set), [`Operator key ${key_id} has the tier ${tier}.`]),
  });

  routeCommand(operatorKey.command('revoke'), 'revokeOperatorKey', {
    about: 'revoke an operator key for good (privileged)',
    values: {
      key_id: ['<key-id>', 'operator key to revoke'],
      reason: ['--reason <text>', 'reason for the revocation'],
    },
    more: (command) =>
      command.option('--force-last-privileged', 'revoke it even if no privileged key is left'),
    examples: ['mesh-na operator-key revoke ops-standard --reason rotated'],
    sent: (given, { forceLastPrivileged }: { readonly forceLastPrivileged?: boolean }) => ({
      ...given,
      unless_last_privileged: forceLastPrivileged ? undefined : true,
    }),
    show(options, revoked, { key_id }) {
      const text = revoked.already_revoked
        ? `Operator key ${key_id} was already revoked.`
        : `Operator key ${key_id} is revoked; ${revoked.remaining_active_keys} remain usable.`;
      printResult(options, asJson(revoked), [text]);
    },
  });
}

/** Runs on the operator's machine: the authority needs only the public key. */
function defineCreate(create: Command): void {
  create
    .description('create an operator key, in files named after its id; overwrites nothing')
    .argument('<key-id>', 'id of the new operator key')
    .option('--key-dir <folder>', 'existing folder for the files', '.')
    .action(runCreate);
  addLocalOptions(create, ['mesh-na operator-key create ops-2']);
}

interface CreateOptions extends OutputOptions {
  readonly keyDir: string;
}

function runCreate(keyId: string, options: CreateOptions): void {
  if (!/^[\w@][\w@.-]*$/.test(keyId)) {
    throw usageFailure(
      'The key id becomes a file name, so it may contain only letters, digits and . _ - @',
    );
  }
  const privateFile = join(options.keyDir, `${keyId}.key`);
  const publicFile = join(options.keyDir, `${keyId}.pub`);
  const seed = newSeed();
  const { publicKey: made } = keyFromSeed(seed);
  onLocalFiles(() => {
    writeKeyFile(privateFile, { kind: 'operator private key', keyId, key: seed });
    const key = Buffer.from(made, 'base64');
    writeKeyFile(publicFile, { kind: 'operator public key', keyId, key });
  });
  const result = {
    key_id: keyId,
    key_file: privateFile,
    public_key_file: publicFile,
    public_key: made,
  };
  printResult(options, result, [
    `Key for ${keyId} created: ${privateFile} for the operator alone, ${publicFile} for the authority.`,
    '',
    'To add it, a privileged operator runs (the tier is standard or privileged):',
    `  mesh-na operator-key add ${keyId} --public-key ${made} --tier standard`,
    'Or configure it at every start of the authority:',
    `  mesh-na serve --operator-public-key ${keyId}=${publicFile} --operator-key-tier ${keyId}=standard`,
    'Then use it in operator commands with:',
    `  --key-id ${keyId} --key-file ${privateFile}`,
  ]);
}

interface KeyOptions {
  readonly publicKey?: string;
  readonly publicKeyFile?: string;
}

function givenPublicKey({ publicKey: key, publicKeyFile: file }: KeyOptions): string {
  if (key !== undefined && file === undefined) return key;
  if (key !== undefined || file === undefined) {
    throw usageFailure('Give the key with either --public-key or --public-key-file');
  }
  return onLocalFiles(() => readPublicKey(file, readArgument)).toString('base64');
}

const COLUMNS: readonly Column<OperatorKeyList['operator_keys'][number]>[] = [
  column('KEY', (key) => key.key_id),
  column('TIER', (key) => key.tier),
  column('STATUS', (key) => key.status),
  column('FROM', (key) => key.added_by ?? key.source, 2),
  timeColumn('ADDED', (key) => key.added_at, 3),
  timeColumn('REVOKED', (key) => key.revoked_at, 4),
  column('REASON', (key) => key.reason, 1),
];

function oneTier(text: string): OperatorTier {
  const tier = TIERS.find((name) => name === text);
  if (tier === undefined) throw new InvalidArgumentError('It must be standard or privileged.');
  return tier;
}
