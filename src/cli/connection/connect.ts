/** `mesh-na connect`: saves the address and the key of an authority. */

import { resolve } from 'node:path';
import { Argument, type Command, Option } from 'commander';
import { readPrivateKey } from '../../base/keys/private-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { addLocalOptions, publicKey, serverUrl } from '../kernel/options.ts';
import { type OutputOptions, printResult } from '../kernel/output.ts';
import {
  configHomeOption,
  DEFAULT_PROFILE,
  FIRST_OPERATORS,
  type Profile,
  profileOption,
  readProfile,
  saveProfile,
} from './profiles.ts';
import { caOption } from './server.ts';

interface ConnectOptions extends OutputOptions {
  readonly authorityKey: string;
  readonly rootKey?: string;
  readonly keyFile: string;
  readonly keyId: string;
  readonly profile: string;
  readonly ca?: string;
  readonly configHome?: string;
  readonly force?: boolean;
}

export function addConnectCommand(program: Command): void {
  const connect = program
    .command('connect')
    .description("save an authority and an operator's key as a profile for operator commands")
    .addArgument(new Argument('<url>', 'address of the authority').argParser(serverUrl))
    .requiredOption('--authority-key <key>', 'public key of the authority', publicKey)
    .option(
      '--root-key <key>',
      'root key of the network, from which the profile follows even after a theft of the authority key',
      publicKey,
    )
    .requiredOption('--key-file <file>', 'private key of the operator')
    .addOption(
      new Option('--key-id <id>', 'id of the operator key')
        .env('MESH_OPERATOR_KEY_ID')
        .default(FIRST_OPERATORS[0].key_id),
    )
    .addOption(caOption())
    .addOption(profileOption().default(DEFAULT_PROFILE))
    .addOption(configHomeOption())
    .option('--force', 'replace a profile for another authority')
    .action(runConnect);
  addLocalOptions(connect, [
    'mesh-na connect https://na.example --authority-key "$NA_KEY" --key-file operator.key',
    'mesh-na connect https://b.example --authority-key "$B_KEY" --key-file b.key --profile b',
  ]);
}

function runConnect(url: string, options: ConnectOptions): void {
  const { authorityKey, keyId, profile: name, configHome } = options;
  const key_file = resolve(options.keyFile);
  const seed = onLocalFiles(() => readPrivateKey(key_file, readArgument));
  if (seed.toString('base64') === authorityKey) {
    throw usageFailure(
      `--authority-key is the private key in ${key_file}; give the public key of the authority`,
    );
  }
  const known = onLocalFiles(() => readProfile(configHome, name));
  const kept = options.force || known === null ? null : followedBefore(known, options);
  if (known !== null && kept === null && !options.force) {
    const message = `Profile "${name}" belongs to the authority ${known.authority_key}; use --force to replace it`;
    throw failure(EXIT.unusable, 'local_files', message);
  }
  const profile: Profile = {
    url,
    ...(kept ?? { authority_key: authorityKey }),
    ...(options.rootKey !== undefined && { root_key: options.rootKey }),
    key_id: keyId,
    key_file,
    ...(options.ca !== undefined && { ca_file: resolve(options.ca) }),
  };
  const file = onLocalFiles(() => saveProfile(configHome, name, profile));
  const { followed: _, ...shown } = profile;
  printResult(options, { profile: name, ...shown, file }, [
    `Saved profile "${name}" in ${file}.`,
    `Operator commands reach ${url} ${name === DEFAULT_PROFILE ? 'where there is no data folder' : `with --profile ${name}`}, as ${keyId}.`,
  ]);
}

type Trust = Pick<Profile, 'authority_key' | 'root_key' | 'followed'>;

/** What the profile has learned of this authority, which stays; null if it belongs to another one. */
function followedBefore(
  { authority_key, root_key, followed }: Profile,
  { authorityKey }: ConnectOptions,
): Trust | null {
  const keys = (followed ?? []).flatMap(({ from_key, to_key }) => [from_key, to_key]);
  if (![authority_key, ...keys].includes(authorityKey)) return null;
  return { authority_key, ...(root_key && { root_key }), ...(followed && { followed }) };
}
