/** `mesh-na operator-key`: the keys of operators. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { keyFromSeed, newSeed } from '../client/keys.ts';
import { writeKeyFile } from '../keys/key-file.ts';
import { defineRenamed } from './earlier-name.ts';
import { onLocalFiles, usageFailure } from './exit-codes.ts';
import { addOperatorOptions, type OperatorOptions, operatorClient } from './operator-connection.ts';
import { examples, jsonOption } from './options.ts';
import { asJson, type OutputOptions, printResult } from './output.ts';

export function addOperatorKeyCommands(program: Command): void {
  const operatorKey = program
    .command('operator-key')
    .description('make and revoke keys of operators');
  defineCreate(operatorKey.command('create'));
  const earlier = { parent: program, name: 'revoke-operator-key' };
  defineRenamed(operatorKey.command('revoke'), earlier, defineRevoke);
}

/** On the operator's own machine: the authority needs the public key only. */
function defineCreate(create: Command): void {
  create
    .description('make the key of an operator, in files named after it; replaces nothing')
    .argument('<key-id>', 'how the operator will be called')
    .option('--key-dir <folder>', 'existing folder for the files', '.')
    .action(runCreate)
    .addOption(jsonOption())
    .addHelpText('after', examples(['mesh-na operator-key create ops-2']));
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
  const { publicKey } = keyFromSeed(seed);
  onLocalFiles(() => {
    writeKeyFile(privateFile, { kind: 'operator private key', keyId, key: seed });
    const key = Buffer.from(publicKey, 'base64');
    writeKeyFile(publicFile, { kind: 'operator public key', keyId, key });
  });
  const made = {
    key_id: keyId,
    key_file: privateFile,
    public_key_file: publicFile,
    public_key: publicKey,
  };
  printResult(options, made, [
    `The key of ${keyId} is made: ${privateFile} for the operator alone, ${publicFile} for the authority.`,
    '',
    'At every start of the authority, with the tier standard or privileged:',
    `  mesh-na serve --operator-public-key ${keyId}=${publicFile} --operator-key-tier ${keyId}=standard`,
    'With every command of the operator:',
    `  --key-id ${keyId} --key-file ${privateFile}`,
  ]);
}

function defineRevoke(revoke: Command): void {
  revoke
    .description('revoke an operator key for good (privileged)')
    .argument('<key-id>', 'operator key to revoke')
    .option('--reason <text>', 'why')
    .action(runRevoke);
  addOperatorOptions(revoke, ['mesh-na operator-key revoke ops-standard --reason rotated']);
}

async function runRevoke(
  keyId: string,
  options: OperatorOptions & { readonly reason?: string },
): Promise<void> {
  const { reason } = options;
  const request = reason === undefined ? {} : { reason };
  const revoked = await operatorClient(options).revokeOperatorKey(keyId, request);
  const text = revoked.already_revoked
    ? `Operator key ${keyId} was revoked before.`
    : `Operator key ${keyId} is revoked; ${revoked.remaining_active_keys} remain usable.`;
  printResult(options, asJson(revoked), [text]);
}
