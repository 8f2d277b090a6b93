/** How operator commands reach the authority and sign requests. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { readPrivateKey } from '../../base/keys/read-key.ts';
import { readArgument } from '../../base/named-file.ts';
import { keyFromSeed, type SigningKey } from '../../client/keys.ts';
import { createOperatorClient, type OperatorClient } from '../../client/operator-client.ts';
import { type GenesisBlock, readGenesisBlock } from '../../protocol/records/genesis.ts';
import { FILES } from '../../server/config/data-folder.ts';
import { DATA_DIR, JSON_OPTION, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, noteSignature, onLocalFiles, usageFailure } from '../kernel/errors.ts';
import { readSaved } from '../kernel/files.ts';
import { publicKey } from '../kernel/options.ts';
import {
  CONFIG_HOME,
  chosenProfile,
  DEFAULT_PROFILE,
  FIRST_OPERATORS,
  followProfile,
  profileOption,
} from './profiles.ts';
import { publicClient, REACH, serverOf } from './server.ts';
import { agentKey } from './ssh-agent.ts';

const KEY_ID_OPTION = option('--key-id <id>', 'id of the operator key to sign with', {
  env: 'MESH_OPERATOR_KEY_ID',
  fallback: FIRST_OPERATORS[0].key_id as string,
});

/** Where the authority is, and which key signs. */
const CONNECTION = [
  ...REACH,
  DATA_DIR,
  KEY_ID_OPTION,
  option(
    '--key-file <file>',
    'private key file (default: the one that init created in the data folder)',
    { env: 'MESH_OPERATOR_KEY_FILE' },
  ),
  option('--agent', 'sign with ssh-agent instead of a key file'),
  option(
    '--agent-key <key>',
    'public key of the agent key to use (default: its only Ed25519 key)',
    {
      parse: publicKey,
    },
  ),
  option('--agent-socket <path>', 'socket of ssh-agent', { env: 'SSH_AUTH_SOCK' }),
  profileOption(),
  CONFIG_HOME,
] as const;

export const OPERATOR = {
  options: [...CONNECTION, JSON_OPTION],
  connection: CONNECTION,
  async before(command: Command): Promise<void> {
    await applyProfile(command);
    await connectAgent(command);
  },
} as const;

export type OperatorOptions = OptionsIn<typeof OPERATOR.options> & {
  /** The profile that is used, if any, and what comes from it. */
  readonly usedProfile?: string;
  readonly authorityKey?: string;
  readonly rootKey?: string;
  /** The key in ssh-agent, if the agent signs. */
  readonly agentSigner?: SigningKey;
};

async function connectAgent(command: Command): Promise<void> {
  const { agent = false, agentKey: wanted, agentSocket } = command.opts();
  if (!agent) return;
  if (agentSocket === undefined) {
    throw usageFailure('--agent needs SSH_AUTH_SOCK, which ssh-agent sets, or --agent-socket');
  }
  command.setOptionValue('agentSigner', await agentKey(agentSocket, wanted));
}

export function operatorClient(options: OperatorOptions): OperatorClient {
  return createOperatorClient(operatorSigning(options));
}

/** What a client for these options signs with, and where it sends requests. */
export function operatorSigning(options: OperatorOptions) {
  const { keyId } = options;
  // Without a data folder and a profile, this is the problem, rather than the missing key file.
  const audience = audienceOf(options);
  const keyFile = options.agentSigner === undefined ? keyFileOf(options) : null;
  const key = options.agentSigner ?? keyIn(keyFile ?? '');
  const { url, dataDir } = options;
  const addressee = { url, audience, publicClient: publicClient(options) };
  noteSignature({ ...addressee, keyId, publicKey: key.publicKey, keyFile, dataDir });
  return { ...serverOf(options), keyId, key, audience };
}

function keyIn(file: string): SigningKey {
  return keyFromSeed(onLocalFiles(() => readPrivateKey(file, readArgument)));
}

/** The authority that requests are signed for. It is never taken from the server's own answer. */
function audienceOf({ authorityKey, dataDir }: OperatorOptions): string {
  if (authorityKey !== undefined) return authorityKey;
  const genesis = genesisIn(dataDir);
  if (genesis !== null) return genesis.network_authority.public_key;
  const cure = 'give the --data-dir of the authority, or run mesh-na connect';
  const message = `${genesisPath(dataDir)} does not exist, so the authority key is not known; ${cure}`;
  throw failure(EXIT.unusable, 'local_files', message);
}

/** What another machine must know of this authority, as options, with placeholders for what is unknown here. */
export async function introduction(options: OperatorOptions) {
  const { url, dataDir, rootKey } = options;
  const isLocal = options.authorityKey === undefined;
  const root = isLocal ? genesisIn(dataDir)?.root_public_key : rootKey;
  const { endpoint } = await publicClient(options)
    .readSovereign()
    .catch(() => ({ endpoint: url }));
  // The line is to be pasted into a shell.
  const address = /^https?:\/\/[\w.:[\]/-]+$/.test(endpoint) ? endpoint : url;
  return { url: address, authorityKey: audienceOf(options), rootKey: root ?? '<root key>' };
}

function genesisPath(dataDir: string): string {
  return join(dataDir, FILES.genesis);
}

function genesisIn(dataDir: string): GenesisBlock | null {
  return onLocalFiles(() => readSaved(genesisPath(dataDir), readGenesisBlock, 'a genesis'));
}

function keyFileOf({ keyFile, dataDir, keyId }: OperatorOptions): string {
  if (keyFile !== undefined) return keyFile;
  const operator = FIRST_OPERATORS.find(({ key_id }) => key_id === keyId);
  if (operator === undefined) throw usageFailure(`Key id ${keyId} needs --key-file`);
  return join(dataDir, FILES.keys, `${operator.name}.key`);
}

/**
 * Fills in missing options from the profile: the named one, or the default one if there is no data folder. Variables
 * come before a profile, unless an option names it.
 */
async function applyProfile(command: Command): Promise<void> {
  const { profile: name, dataDir, configHome } = command.opts();
  if (name === undefined && existsSync(genesisPath(dataDir))) return;
  const profile = chosenProfile(configHome, name);
  if (profile === null) return;
  const isNamed = command.getOptionValueSource('profile') === 'cli';
  fillIn(command, isNamed ? ['cli'] : ['cli', 'env'], {
    url: profile.url,
    keyId: profile.key_id,
    keyFile: profile.key_file,
    ca: profile.ca_file,
  });
  const place = { configHome, name: name ?? DEFAULT_PROFILE };
  const followed = await followProfile(place, profile, command.opts() as OperatorOptions);
  const { authority_key: authorityKey, root_key: rootKey } = followed;
  fillIn(command, [], { authorityKey, rootKey, usedProfile: place.name });
}

/** Leaves options from the sources that come first; what the profile does not have stays, too. */
function fillIn(
  command: Command,
  first: readonly string[],
  settings: Readonly<Record<string, string | undefined>>,
): void {
  for (const [option, value] of Object.entries(settings)) {
    if (value === undefined || first.includes(command.getOptionValueSource(option) ?? '')) continue;
    command.setOptionValue(option, value);
  }
}
