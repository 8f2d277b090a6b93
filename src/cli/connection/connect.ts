/** `mesh-na connect` and `mesh-na profile`: the authorities that operator commands of this user reach. */

import { dirname, resolve } from 'node:path';
import { Argument, type Command } from 'commander';
import { readPrivateKey } from '../../base/keys/read-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { keyFromSeed } from '../../client/keys.ts';
import { createOperatorClient } from '../../client/operator-client.ts';
import { define, type OptionsIn, option, WIDE } from '../kernel/command.ts';
import { EXIT, failure, noteSignature, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { publicKey, serverUrl } from '../kernel/options.ts';
import { type OutputOptions, printResult } from '../kernel/output.ts';
import { type Column, column, idColumn, tableOf } from '../kernel/table.ts';
import {
  CONFIG_HOME,
  chosenProfile,
  DEFAULT_PROFILE,
  FIRST_OPERATORS,
  followProfile,
  type Profile,
  profileName,
  profileOption,
  readProfile,
  readProfiles,
  removeProfile,
  saveProfile,
} from './profiles.ts';
import { CA_OPTION, publicClient, serverOf } from './server.ts';

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
  option('--offline', 'save the profile without asking the authority'),
] as const;

const NAME = new Argument('<name>', 'name of the profile').argParser(profileName);

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

async function runConnect(options: ConnectOptions, [url = '']: readonly string[]): Promise<void> {
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
  const found = options.offline ? null : await recognized(options, name, profile, seed);
  const saved = found?.profile ?? profile;
  const file = onLocalFiles(() => saveProfile(configHome, name, saved));
  printResult(options, { profile: name, ...shownOf(saved), file, ...found?.known }, [
    ...(found === null
      ? []
      : [
          `The authority of network "${found.known.network_name}" knows this key: ${keyId}, ${found.known.tier}.`,
        ]),
    `Saved profile "${name}" in ${file}.`,
    `Operator commands reach ${url} ${name === DEFAULT_PROFILE ? 'where there is no data folder' : `with --profile ${name}`}, as ${keyId}.`,
  ]);
}

/**
 * Which network answers there, and what the operator's key may do; with the profile as it follows to the current key.
 * The profile of another authority is refused.
 */
async function recognized(
  { json, configHome }: ConnectOptions,
  name: string,
  given: Profile,
  seed: Buffer,
) {
  const { url, key_id: keyId, key_file: keyFile, ca_file: ca } = given;
  const reach = { url, ...(ca !== undefined && { ca }), ...(json && { json }) };
  const anyone = publicClient(reach);
  const { network_name, network_authority } = await anyone.readGenesis();
  const { public_key: audience } = network_authority;
  const profile =
    audience === given.authority_key
      ? given
      : await followProfile({ name, ...(configHome && { configHome }) }, given, reach);
  if (profile.authority_key !== audience) {
    const message = `${url} is the authority ${audience} of network "${network_name}", not ${given.authority_key}; nothing was saved`;
    throw failure(EXIT.refused, 'other_authority', message);
  }
  const key = keyFromSeed(seed);
  const addressee = { url, audience, publicClient: anyone };
  const dataDir = dirname(keyFile);
  noteSignature({ ...addressee, keyId, publicKey: key.publicKey, keyFile, dataDir });
  const client = createOperatorClient({ ...serverOf(reach), keyId, key, audience });
  const { operator_keys } = await client.listOperatorKeys();
  const tier = operator_keys.find(({ key_id }) => key_id === keyId)?.tier ?? null;
  return { profile, known: { network_name, tier } };
}

/** The statements that a profile has followed are long. */
function shownOf({ followed: _, ...shown }: Profile) {
  return shown;
}

const COLUMNS: readonly Column<readonly [name: string, profile: Profile]>[] = [
  column('PROFILE', ([name]) => name),
  column('ADDRESS', ([, { url }]) => url, 3),
  column('OPERATOR', ([, { key_id }]) => key_id, 2),
  idColumn('AUTHORITY', ([, { authority_key }]) => authority_key, 1),
];

export function addProfileCommands(profile: Command): void {
  define(profile, 'list', {
    about: 'list the profiles',
    options: [CONFIG_HOME, WIDE],
    examples: ['mesh-na profile list'],
    run(options) {
      const rows = onLocalFiles(() => readProfiles(options.configHome));
      const profiles = rows.map(([name, each]) => ({ name, ...shownOf(each) }));
      const none = ['There is no profile; create one with mesh-na connect.'];
      const text = rows.length === 0 ? none : tableOf(COLUMNS, rows, options);
      printResult(options, { count: rows.length, profiles }, text);
    },
  });
  define(profile, 'show', {
    about: 'show a profile',
    args: [NAME],
    options: [CONFIG_HOME],
    examples: ['mesh-na profile show alpha'],
    run(options, [name = '']) {
      const shown = shownOf(chosenProfile(options.configHome, name) as Profile);
      const lines = Object.entries(shown).map(([member, text]) => `${member.padEnd(14)} ${text}`);
      printResult(options, { name, ...shown }, lines);
    },
  });
  define(profile, 'remove', {
    about: "remove a profile, without the operator's key",
    args: [NAME],
    options: [CONFIG_HOME],
    examples: ['mesh-na profile remove alpha'],
    run(options, [name = '']) {
      chosenProfile(options.configHome, name);
      const file = removeProfile(options.configHome, name);
      printResult(options, { name, file }, [`Profile "${name}" is removed.`]);
    },
  });
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
