/** Checks of the settings that `serve` would use: genesis, keys, operators, TLS. Each part is checked separately. */

import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { counted } from '../../base/counts.ts';
import { SHA256 } from '../../base/crypto/digest.ts';
import { signerFromSeed, verifySignature } from '../../base/crypto/ed25519.ts';
import { messageOf } from '../../base/error-message.ts';
import { exposedKeyFiles, parseKeyText, readKeyFile } from '../../base/keys/key-file.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { readTlsPair } from '../../base/tls/pair.ts';
import { firstPolicyHash } from '../../protocol/records/first-policy.ts';
import { type GenesisBlock, isSignedByRoot } from '../../protocol/records/genesis.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { unknownVariables } from '../../server/config/config-file.ts';
import { FILES } from '../../server/config/data-folder.ts';
import {
  loadGenesis,
  nextKeyFile,
  nextKeyFileIn,
  signingKeyFile,
} from '../../server/config/identity.ts';
import { type Config, checkConfig, exposureWarnings } from '../../server/config/load.ts';
import type { Environment, Flags, Setting } from '../../server/config/options.ts';
import { readSettings } from '../../server/config/settings.ts';
import { ending, type Finding, fine, unknown, warning, wrong } from './finding.ts';

export interface SettingsOptions {
  readonly flags: Flags;
  readonly environment: Environment;
  /** Variables that other commands read. */
  readonly otherVariables: readonly string[];
  readonly now: number;
}

/** The genesis is null when it cannot be read, and the configuration when a start would be refused. */
export function checkSettings(options: SettingsOptions) {
  const { flags, environment, now } = options;
  const { dataDir, setting } = readSettings(flags, environment);
  const folder = checkFolder(dataDir);
  if (folder.outcome === 'wrong')
    return { dataDir, genesis: null, config: null, findings: [folder] };
  const { genesis, findings } = checkGenesis(setting, dataDir, now);
  const parts = [
    ...findings,
    checkAuthorityKey(setting, dataDir, genesis),
    checkModes(setting, dataDir),
    checkRootKey(dataDir),
    ...checkTls(setting, now),
  ];
  const { config, findings: whole } = checkWhole(options, setting, parts);
  return { dataDir, genesis, config, findings: [folder, ...parts, ...whole] };
}

/** Returns the result of the work, or its error message. */
function attempt<T>(work: () => T): [T, null] | [null, string] {
  try {
    return [work(), null];
  } catch (cause) {
    return [null, messageOf(cause)];
  }
}

const WRITABLE_BY_OTHERS = 0o022;

function checkFolder(dataDir: string): Finding {
  const found = statSync(dataDir, { throwIfNoEntry: false });
  const cure = 'Set --data-dir to the folder of the authority; mesh-na init creates one';
  if (found === undefined) return wrong('data_folder', `${dataDir} does not exist`, cure);
  if (!found.isDirectory()) return wrong('data_folder', `${dataDir} is not a folder`, cure);
  const [, problem] = attempt(() => accessSync(dataDir, constants.R_OK | constants.W_OK));
  if (problem !== null) {
    const own = 'Run this as the user of the authority, or make that user the owner of the folder';
    return wrong('data_folder', `This user cannot read and write ${dataDir}`, own);
  }
  if ((found.mode & WRITABLE_BY_OTHERS) !== 0) {
    const found = `Other users may write to ${dataDir}, and so become the authority`;
    return warning('data_folder', found, `Run chmod go-w ${dataDir}`);
  }
  return fine('data_folder', dataDir);
}

const RESTORE_GENESIS = 'Restore it from a copy that you trust';

function checkGenesis(setting: Setting, dataDir: string, now: number) {
  const [genesis, problem] = attempt(() => loadGenesis(setting, dataDir, true));
  if (genesis === null) {
    return { genesis, findings: [wrong('genesis', problem, RESTORE_GENESIS)] };
  }
  const { network_name: name, root_public_key: root } = genesis;
  const isSigned = isSignedByRoot(genesis, verifySignature);
  const findings = [
    fine('genesis', `The genesis of ${name}`),
    isSigned
      ? fine('root_signature', `Signed by the root key ${root}`)
      : wrong('root_signature', 'The root key did not sign this genesis', RESTORE_GENESIS),
    checkFirstPolicy(genesis),
    checkDelegation(genesis, now),
    checkClock(genesis, now),
  ];
  return { genesis, findings };
}

/**
 * Earlier versions put no policy digest into the genesis, and a published genesis must not change. One that was issued
 * again with a later key of the authority still has the digest of the policy that `founding`, the first one, names.
 */
export function checkFirstPolicy(genesis: GenesisBlock, founding = genesis): Finding {
  const { hash } = genesis.policy_manifest;
  if (hash === firstPolicyHash(founding, SHA256)) {
    return fine('first_policy', 'The genesis has the digest of the first policy');
  }
  return hash === NO_POLICY
    ? fine('first_policy', 'The genesis is from an earlier version, which had no policy digest')
    : warning(
        'first_policy',
        `The digest in the genesis does not match the first policy of a new authority: ${hash}`,
        'Compare it with the first policy in mesh-na policy list',
      );
}

const NO_POLICY = 'sha256:placeholder';

const RENEW =
  'Run mesh-na genesis renew on the machine with the root key, and replace genesis.json with the result';

/** A correct clock cannot be earlier than the start of the delegation. */
function checkClock({ network_authority: { valid_from } }: GenesisBlock, now: number): Finding {
  return instantOf(valid_from) > now
    ? wrong('clock', `The clock is before ${valid_from}, when this network began`, 'Set the clock')
    : fine('clock', `The time is ${formatInstant(now)}`);
}

function checkDelegation({ network_authority }: GenesisBlock, now: number): Finding {
  const end = instantOf(network_authority.valid_to);
  return ending('delegation', 'The delegation of the root key', end, now, RENEW);
}

function checkAuthorityKey(
  setting: Setting,
  dataDir: string,
  genesis: GenesisBlock | null,
): Finding {
  if (setting('signer') !== null) return fine('authority_key', 'A signer holds the private key');
  const cure = 'Restore the private key that matches the genesis';
  const [seed, problem] = attempt(() => authoritySeed(setting, dataDir));
  if (seed === null) return wrong('authority_key', problem, cure);
  if (genesis === null)
    return unknown('authority_key', 'There is no genesis to compare the key with', cure);
  const { public_key: named } = genesis.network_authority;
  // At the end of a succession, the genesis may name the next key before its file is renamed.
  const next = nextKeyFileIn(setting, dataDir);
  const isNext = () => existsSync(next) && attempt(() => publicKeyIn(next))[0] === named;
  return signerFromSeed(seed).publicKey === named || isNext()
    ? fine('authority_key', 'The private key matches the genesis')
    : wrong('authority_key', 'The private key does not match the genesis', cure);
}

function publicKeyIn(path: string): string {
  return signerFromSeed(readKeyFile(path)).publicKey;
}

function authoritySeed(setting: Setting, dataDir: string): Buffer {
  const file = signingKeyFile(setting, dataDir);
  if (file !== null) return readKeyFile(file);
  const seed = parseKeyText(setting('naPrivateKeyText') ?? '');
  if (seed === null) throw new Error('NA_PRIVATE_KEY is not base64 of 32 bytes');
  return seed;
}

function checkModes(setting: Setting, dataDir: string): Finding {
  const file = signingKeyFile(setting, dataDir);
  const others = file === null ? [] : [file, nextKeyFile(file)];
  const exposed = exposedKeyFiles(join(dataDir, FILES.keys), others);
  if (exposed.length === 0) return fine('key_modes', 'No other user can read a private key');
  const paths = exposed.join(' ');
  return wrong(
    'key_modes',
    `Every user of this machine can read ${paths}`,
    `Run chmod 600 ${paths}`,
  );
}

function checkRootKey(dataDir: string): Finding {
  const path = join(dataDir, FILES.keys, 'root.key');
  return existsSync(path)
    ? warning('root_key', `${path} is on this machine`, 'Move it offline')
    : fine('root_key', 'The root key is not in the data folder');
}

function checkTls(setting: Setting, now: number): Finding[] {
  const [certFile, keyFile] = [setting('tlsCert'), setting('tlsKey')];
  if (certFile === null || keyFile === null) return [];
  const cure = 'Install a valid certificate with its matching key';
  const [pair, problem] = attempt(() => readTlsPair({ certFile, keyFile }, now));
  if (pair === null) return [wrong('tls', problem, cure)];
  return [ending('tls', `The TLS certificate ${certFile}`, pair.notAfter, now, cure)];
}

const CORRECT = 'Correct the setting';

/** Checks whether a start would accept the settings as a whole. */
function checkWhole(
  { flags, environment, now, otherVariables }: SettingsOptions,
  setting: Setting,
  parts: readonly Finding[],
): { readonly config: Config | null; readonly findings: readonly Finding[] } {
  const { config, problems } = checkConfig(flags, environment, now, otherVariables);
  // Problems with single parts have been reported already.
  const isKnown = parts.some(({ outcome }) => outcome === 'wrong');
  const judge = config === null && isKnown ? unknown : wrong;
  const found = problems.map((problem) => judge('configuration', problem, CORRECT));
  if (config === null) return { config, findings: found };
  const misspelt = unknownVariables(environment, otherVariables);
  const exposure = exposureWarnings(setting);
  return {
    config,
    findings: [
      ...found,
      ...(found.length === 0 && misspelt.length === 0
        ? [fine('configuration', 'The settings are valid')]
        : []),
      ...(misspelt.length === 0 ? [] : [warning('configuration', misspelt.join('; '), CORRECT)]),
      checkOperators(config),
      exposure.length === 0
        ? fine('exposure', 'No traffic is unencrypted')
        : warning(
            'exposure',
            exposure.join('; '),
            'See the sections on TLS and proxies in docs/keys-and-tls.md',
          ),
    ],
  };
}

function checkOperators({ operators }: Config): Finding {
  const privileged = operators.filter(({ tier }) => tier === 'privileged').length;
  const found = `${counted(operators.length, 'operator key is', 'operator keys are')} configured, ${privileged} of them privileged`;
  const cure = 'Configure a privileged operator key';
  return privileged === 0 ? warning('operator_keys', found, cure) : fine('operator_keys', found);
}
