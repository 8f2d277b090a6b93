/** Shared by the `verify` commands: verification by the authority or, with `--offline`, by this program. */
import { type Command, Option } from 'commander';
import { systemRuntime } from '../base/runtime.ts';
import { genesisProblem } from '../client/network-trust.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { EXIT, failure, usageFailure } from './exit-codes.ts';
import { readGenesisFile, readJsonFile } from './json-file.ts';
import { offlineVerdicts, type Verifications } from './offline-verdicts.ts';
import { addPublicOptions, type PublicOptions } from './options.ts';
import { type KnownParties, knownParties } from './party-keys.ts';
import { chosenProfile, configHomeOption, profileName } from './profiles.ts';
import { publicClient } from './server.ts';

export interface VerificationOptions extends PublicOptions {
  readonly offline?: boolean;
  readonly genesis?: string;
  readonly profile?: string;
  readonly configHome?: string;
  /** Only for `attestation verify`. */
  readonly feed?: string;
}

/** Ends the definition of a command that verifies with its options and its examples. */
export function addVerificationOptions(command: Command, lines: readonly string[]): void {
  command
    .option('--offline', 'verify locally without asking an authority')
    .option('--genesis <file>', 'with --offline: genesis of the authority whose key is the default')
    .addOption(
      new Option(
        '--profile <name>',
        'with --offline: profile of the authority whose key is the default',
      ).argParser(profileName),
    )
    .addOption(configHomeOption());
  addPublicOptions(command, lines);
}

export async function verifierOf(options: VerificationOptions): Promise<Verifications> {
  const { offline, feed } = options;
  if (!offline) {
    assertOnline(options);
    return publicClient(options);
  }
  const anchor = await anchorOf(options);
  return offlineVerdicts({
    authorityKey: () => keyOf(anchor),
    feed: feed === undefined ? null : await readJsonFile(feed),
    runtime: systemRuntime,
  });
}

/** The parties whose keys are known by default. */
export async function partiesOf(options: VerificationOptions): Promise<KnownParties> {
  if (!options.offline) return knownParties(publicClient(options));
  const { sovereignId, key } = await anchorOf(options);
  return { sovereignId, authorityKey: key, recognized: new Map() };
}

/** The trusted authority; unknown members are null. */
interface Anchor {
  readonly sovereignId: string | null;
  readonly key: string | null;
}

async function anchorOf({
  genesis: file,
  profile,
  configHome,
}: VerificationOptions): Promise<Anchor> {
  if (file !== undefined) return anchorIn(await readGenesisFile(file));
  const known = chosenProfile(configHome, profile);
  return { sovereignId: null, key: known?.authority_key ?? null };
}

function anchorIn(genesis: GenesisBlock): Anchor {
  const pin = { rootKey: genesis.root_public_key, genesis: null };
  const problem = genesisProblem(genesis, pin, systemRuntime.now());
  if (problem !== null) {
    throw failure(EXIT.refused, 'invalid_genesis', `The genesis is rejected: ${problem}`);
  }
  return { sovereignId: genesis.network_name, key: genesis.network_authority.public_key };
}

function keyOf({ key }: Anchor): string {
  if (key !== null) return key;
  const message = '--offline needs the key of the signer, --genesis or --profile';
  throw usageFailure(message);
}

function assertOnline({ genesis, profile, feed }: VerificationOptions): void {
  for (const [flag, value] of Object.entries({ genesis, profile, feed })) {
    if (value !== undefined) throw usageFailure(`--${flag} needs --offline`);
  }
}
