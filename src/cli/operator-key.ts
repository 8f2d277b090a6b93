/** `mesh-na operator-key`: creates and manages the keys of operators. */

import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { writeKeyFile } from '../base/keys/key-file.ts';
import { readPublicKey } from '../base/keys/public-key.ts';
import { readArgument } from '../base/named-file.ts';
import { keyFromSeed, newSeed } from '../client/keys.ts';
import type { OperatorTier } from '../client/operator-client.ts';
import type { OperatorKeyList } from '../protocol/answers/operators.ts';
import { addOperatorKey, revokeOperatorKey } from '../protocol/api/operator-keys.ts';
import { TIERS } from '../protocol/rows/operator-key.ts';
import { onLocalFiles, usageFailure } from './exit-codes.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { addLocalOptions, publicKey } from './options.ts';
import { asJson, type OutputOptions, printResult } from './output.ts';
import { routeOptions } from './route-options.ts';
import {
  addWideOption,
  type Column,
  column,
  type TableOptions,
  tableOf,
  timeColumn,
} from './table.ts';

const ADDED = routeOptions(addOperatorKey, { tier: ['--tier <tier>', 'tier of the key'] });

const REVOKED = routeOptions(revokeOperatorKey, {
  reason: ['--reason <text>', 'reason for the revocation'],
});

export function addOperatorKeyCommands(program: Command): void {
  const operatorKey = program
    .command('operator-key')
    .description('create, add, list and revoke operator keys');
  defineCreate(operatorKey.command('create'));
  defineAdd(operatorKey.command('add'));
  defineList(operatorKey.command('list'));
  defineSetTier(operatorKey.command('set-tier'));
  defineRevoke(operatorKey.command('revoke'));
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

interface AddOptions extends OperatorOptions {
  readonly publicKey?: string;
  readonly publicKeyFile?: string;
}

function defineAdd(add: Command): void {
  add
    .description('add an operator key, effective immediately and permanently (privileged)')
    .argument('<key-id>', 'id of the new operator key')
    .option('--public-key <key>', 'public key', publicKey)
    .option(
      '--public-key-file <file>',
      'file with the public key, from operator-key create or ssh-keygen',
    )
    .action(runAdd);
  addOperatorOptions(ADDED.addTo(add), [
    'mesh-na operator-key add ops-2 --public-key-file ops-2.pub --tier standard',
  ]);
}

async function runAdd(keyId: string, options: AddOptions): Promise<void> {
  const { tier } = ADDED.sentIn(options);
  const public_key = givenPublicKey(options);
  const added = await operatorClient(options).addOperatorKey({ key_id: keyId, public_key, tier });
  printResult(options, asJson(added), [`Operator key ${keyId} is added, with the tier ${tier}.`]);
}

function givenPublicKey({ publicKey: key, publicKeyFile: file }: AddOptions): string {
  if (key !== undefined && file === undefined) return key;
  if (key !== undefined || file === undefined) {
    throw usageFailure('Give the key with either --public-key or --public-key-file');
  }
  return onLocalFiles(() => readPublicKey(file, readArgument)).toString('base64');
}

function defineList(list: Command): void {
  list.description('list all operator keys, usable and revoked (standard)').action(runList);
  addOperatorOptions(addWideOption(list), ['mesh-na operator-key list']);
}

async function runList(options: OperatorOptions & TableOptions): Promise<void> {
  const list = await operatorClient(options).listOperatorKeys();
  printResult(options, asJson(list), tableOf(COLUMNS, list.operator_keys, options));
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

function defineSetTier(setTier: Command): void {
  setTier
    .description('change the tier of an added operator key (privileged)')
    .argument('<key-id>', 'operator key to change')
    .argument('<tier>', 'standard or privileged', oneTier)
    .action(runSetTier);
  addOperatorOptions(setTier, ['mesh-na operator-key set-tier ops-2 privileged']);
}

async function runSetTier(
  keyId: string,
  tier: OperatorTier,
  options: OperatorOptions,
): Promise<void> {
  const set = await operatorClient(options).setOperatorKeyTier({ key_id: keyId, tier });
  printResult(options, asJson(set), [`Operator key ${keyId} has the tier ${tier}.`]);
}

function oneTier(text: string): OperatorTier {
  const tier = TIERS.find((name) => name === text);
  if (tier === undefined) throw new InvalidArgumentError('It must be standard or privileged.');
  return tier;
}

function defineRevoke(revoke: Command): void {
  revoke
    .description('revoke an operator key for good (privileged)')
    .argument('<key-id>', 'operator key to revoke')
    .option('--force-last-privileged', 'revoke it even if no privileged key is left')
    .action(runRevoke);
  addOperatorOptions(REVOKED.addTo(revoke), [
    'mesh-na operator-key revoke ops-standard --reason rotated',
  ]);
}

async function runRevoke(
  keyId: string,
  options: OperatorOptions & { readonly forceLastPrivileged?: boolean },
): Promise<void> {
  const revoked = await operatorClient(options).revokeOperatorKey({
    key_id: keyId,
    ...REVOKED.sentIn(options),
    unless_last_privileged: options.forceLastPrivileged ? undefined : true,
  });
  const text = revoked.already_revoked
    ? `Operator key ${keyId} was already revoked.`
    : `Operator key ${keyId} is revoked; ${revoked.remaining_active_keys} remain usable.`;
  printResult(options, asJson(revoked), [text]);
}
