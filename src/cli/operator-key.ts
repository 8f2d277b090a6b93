/** `mesh-na operator-key`: the keys of operators. */
import { join } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { writeKeyFile } from '../base/keys/key-file.ts';
import { readPublicKey } from '../base/keys/public-key.ts';
import { keyFromSeed, newSeed } from '../client/keys.ts';
import type { OperatorTier } from '../client/operator-client.ts';
import type { OperatorKeyList } from '../protocol/answers/operators.ts';
import { TIERS } from '../protocol/rows/operator-key.ts';
import { onLocalFiles, usageFailure } from './exit-codes.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { addLocalOptions, publicKey } from './options.ts';
import { asJson, type OutputOptions, printResult } from './output.ts';
import {
  addWideOption,
  type Column,
  column,
  type TableOptions,
  tableOf,
  timeColumn,
} from './table.ts';

export function addOperatorKeyCommands(program: Command): void {
  const operatorKey = program
    .command('operator-key')
    .description('make, add, list and revoke keys of operators');
  defineCreate(operatorKey.command('create'));
  defineAdd(operatorKey.command('add'));
  defineList(operatorKey.command('list'));
  defineSetTier(operatorKey.command('set-tier'));
  defineRevoke(operatorKey.command('revoke'));
}

/** On the operator's own machine: the authority needs the public key only. */
function defineCreate(create: Command): void {
  create
    .description('make the key of an operator, in files named after it; replaces nothing')
    .argument('<key-id>', 'how the operator will be called')
    .option('--key-dir <folder>', 'existing folder for the files', '.')
    .action(runCreate);
  addLocalOptions(create, ['mesh-na operator-key create ops-2']);
}

interface CreateOptions extends OutputOptions {
  readonly keyDir: string;
}

function runCreate(keyId: string, options: CreateOptions): void {
  if (!/^[\w@][\w@.-]*$/.test(keyId)) {
    throw usageFailure('The key id names files, so it takes letters, digits and . _ - @ only');
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
    'A privileged operator adds it, with the tier standard or privileged:',
    `  mesh-na operator-key add ${keyId} --public-key ${made} --tier standard`,
    'Or at every start of the authority:',
    `  mesh-na serve --operator-public-key ${keyId}=${publicFile} --operator-key-tier ${keyId}=standard`,
    'With every command of the operator:',
    `  --key-id ${keyId} --key-file ${privateFile}`,
  ]);
}

interface AddOptions extends OperatorOptions {
  readonly publicKey?: string;
  readonly publicKeyFile?: string;
  readonly tier: OperatorTier;
}

function defineAdd(add: Command): void {
  add
    .description('add the key of an operator, usable at once and after every start (privileged)')
    .argument('<key-id>', 'how the operator will be called')
    .option('--public-key <key>', 'its public key', publicKey)
    .option(
      '--public-key-file <file>',
      'or the file of it, as operator-key create or ssh-keygen made it',
    )
    .addOption(tierOption().makeOptionMandatory())
    .action(runAdd);
  addOperatorOptions(add, [
    'mesh-na operator-key add ops-2 --public-key-file ops-2.pub --tier standard',
  ]);
}

async function runAdd(keyId: string, options: AddOptions): Promise<void> {
  const { tier } = options;
  const public_key = givenPublicKey(options);
  const added = await operatorClient(options).addOperatorKey({ key_id: keyId, public_key, tier });
  printResult(options, asJson(added), [`Operator key ${keyId} is added, with the tier ${tier}.`]);
}

function givenPublicKey({ publicKey: key, publicKeyFile: file }: AddOptions): string {
  if (key !== undefined && file === undefined) return key;
  if (key !== undefined || file === undefined) {
    throw usageFailure('Give the key by either --public-key or --public-key-file');
  }
  return onLocalFiles(() => readPublicKey(file)).toString('base64');
}

function tierOption(): Option {
  return new Option('--tier <tier>', 'what the key may do').choices(TIERS);
}

function defineList(list: Command): void {
  list.description('list all operator keys, usable and revoked (standard)').action(runList);
  addOperatorOptions(addWideOption(list), ['mesh-na operator-key list']);
}

async function runList(options: OperatorOptions & TableOptions): Promise<void> {
  const list = await operatorClient(options).operatorKeys();
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
    .description('change the tier of an operator key that was added (privileged)')
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
  const set = await operatorClient(options).setOperatorKeyTier(keyId, tier);
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
    .option('--reason <text>', 'why')
    .option('--force-last-privileged', 'also when no privileged key is left then')
    .action(runRevoke);
  addOperatorOptions(revoke, ['mesh-na operator-key revoke ops-standard --reason rotated']);
}

async function runRevoke(
  keyId: string,
  options: OperatorOptions & { readonly reason?: string; readonly forceLastPrivileged?: boolean },
): Promise<void> {
  const { reason, forceLastPrivileged = false } = options;
  const request = {
    ...(reason !== undefined && { reason }),
    ...(!forceLastPrivileged && { unless_last_privileged: true }),
  };
  const revoked = await operatorClient(options).revokeOperatorKey(keyId, request);
  const text = revoked.already_revoked
    ? `Operator key ${keyId} was revoked before.`
    : `Operator key ${keyId} is revoked; ${revoked.remaining_active_keys} remain usable.`;
  printResult(options, asJson(revoked), [text]);
}
