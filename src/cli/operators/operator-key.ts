/** `mesh-na operator-key`: creates and manages the keys of operators. */

import { join } from 'node:path';
import type { Command } from 'commander';
import { writeKeyFile } from '../../base/keys/key-file.ts';
import { readPublicKey } from '../../base/keys/read-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { keyFromSeed, newSeed } from '../../client/keys.ts';
import type { OperatorKeyList } from '../../protocol/answers/operators.ts';
import { introduction } from '../connection/operator.ts';
import { routeCommand } from '../connection/route-command.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { publicKey } from '../kernel/options.ts';
import { asJson, type OutputOptions, printNote, printResult } from '../kernel/output.ts';
import { type Column, column, tableOf, timeColumn } from '../kernel/table.ts';

const KEY = [
  option('--public-key <key>', 'public key', { parse: publicKey }),
  option(
    '--public-key-file <file>',
    'file with the public key, from operator-key create or ssh-keygen',
  ),
] as const;

export function addOperatorKeyCommands(operatorKey: Command): void {
  // Runs on the operator's machine: the authority needs only the public key.
  define(operatorKey, 'create', {
    about: 'create an operator key, in files named after its id; overwrites nothing',
    args: [['<key-id>', 'id of the new operator key']],
    options: [option('--key-dir <folder>', 'existing folder for the files', { fallback: '.' })],
    examples: ['mesh-na operator-key create ops-2'],
    run: (options, [keyId = '']) => createKey(keyId, options),
  });

  routeCommand(operatorKey, 'add', 'addOperatorKey', {
    about: 'add an operator key, effective immediately and permanently (privileged)',
    values: {
      key_id: ['<key-id>', 'id of the new operator key'],
      tier: ['--tier <tier>', 'tier of the key'],
    },
    options: KEY,
    examples: ['mesh-na operator-key add ops-2 --public-key-file ops-2.pub --tier standard'],
    sent: (given, options) => ({ ...given, public_key: givenPublicKey(options) }),
    async show(added, { key_id, tier }, options) {
      const text = `Operator key ${key_id} is added, with the tier ${tier}.`;
      printResult(options, asJson(added), [text]);
      if (options.json) return;
      const { url, authorityKey, rootKey } = await introduction(options);
      const keys = `--authority-key ${authorityKey} --root-key ${rootKey}`;
      printNote("On the operator's machine:");
      printNote(`  mesh-na connect ${url} ${keys} --key-id ${key_id} --key-file ${key_id}.key`);
    },
  });

  routeCommand(operatorKey, 'list', 'listOperatorKeys', {
    about: 'list all operator keys, usable and revoked (standard)',
    options: [WIDE],
    examples: ['mesh-na operator-key list'],
    text: (list, _, options) => tableOf(COLUMNS, list.operator_keys, options),
  });

  routeCommand(operatorKey, 'set-tier', 'setOperatorKeyTier', {
    about: 'change the tier of an added operator key (privileged)',
    values: {
      key_id: ['<key-id>', 'operator key to change'],
      tier: ['<tier>', 'its new tier'],
    },
    examples: ['mesh-na operator-key set-tier ops-2 privileged'],
    text: (_, { key_id, tier }) => [`Operator key ${key_id} has the tier ${tier}.`],
  });

  routeCommand(operatorKey, 'revoke', 'revokeOperatorKey', {
    about: 'revoke an operator key for good (privileged)',
    values: {
      key_id: ['<key-id>', 'operator key to revoke'],
      reason: ['--reason <text>', 'reason for the revocation'],
    },
    options: [option('--force-last-privileged', 'revoke it even if no privileged key is left')],
    examples: ['mesh-na operator-key revoke ops-standard --reason rotated'],
    sent: (given, { forceLastPrivileged }) => ({
      ...given,
      unless_last_privileged: forceLastPrivileged ? undefined : true,
    }),
    text: ({ already_revoked, remaining_active_keys: left }, { key_id }) => [
      already_revoked
        ? `Operator key ${key_id} was already revoked.`
        : `Operator key ${key_id} is revoked; ${left} remain usable.`,
    ],
  });
}

interface CreateOptions extends OutputOptions {
  readonly keyDir: string;
}

function createKey(keyId: string, options: CreateOptions): void {
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

function givenPublicKey({ publicKey: key, publicKeyFile: file }: OptionsIn<typeof KEY>): string {
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
