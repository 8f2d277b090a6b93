/** `mesh-na connect`: saves the address and the key of an authority. */

import { resolve } from 'node:path';
import { Argument, type Command } from 'commander';
import { readPrivateKey } from '../../base/keys/private-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { define, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { publicKey, serverUrl } from '../kernel/options.ts';
import { type OutputOptions, printResult } from '../kernel/output.ts';
import {
  CONFIG_HOME,
  DEFAULT_PROFILE,
  FIRST_OPERATORS,
  type Profile,
  profileOption,
  readProfile,
  saveProfile,
} from './profiles.ts';
import { CA_OPTION } from './server.ts';

const OPTIONS = [
  option('--authority-key <key>', 'public key of the authority', {
    parse: publicKey,
    required: true,
  }),
  option(
    '--root-key <key>',
    'root key of the network, from which the profile follows even after a theft of the authority key',
    { parse: publicKey },
  ),
  option('--key-file <file>', 'private key of the operator', { required: true }),
  option('--key-id <id>', 'id of the operator key', {
    env: 'MESH_OPERATOR_KEY_ID',
    fallback: FIRST_OPERATORS[0].key_id as string,
  }),
  CA_OPTION,
  profileOption(DEFAULT_PROFILE),
  CONFIG_HOME,
  option('--force', 'replace a profile for another authority'),
] as const;

type ConnectOptions = OptionsIn<typeof OPTIONS> & OutputOptions;

export function addConnectCommand(program: Command): void {
  define(program, 'connect', {
    about: "save an authority and an operator's key as a profile for operator commands",
    args: [new Argument('<url>', 'address of the authority').argParser(serverUrl)],
    options: OPTIONS,
    examples: [
      'mesh-na connect https://na.example --authority-key "$NA_KEY" --key-file operator.key',
      'mesh-na connect https://b.example --authority-key "$B_KEY" --key-file b.key --profile b',
    ],
    run: runConnect,
  });
}

function runConnect(options: ConnectOptions, [url = '']: readonly string[]): void {
  const { authorityKey, keyId, profile: name = DEFAULT_PROFILE, configHome } = options;
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
