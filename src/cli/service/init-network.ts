/**
 * Creates the files of a new network: root, authority and operator keys, the signed genesis, and the
 * configuration.
 */

import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { SHA256 } from '../../base/crypto/digest.ts';
import { signerFromSeed } from '../../base/crypto/ed25519.ts';
import type { Signer } from '../../base/crypto/primitives.ts';
import { DAY_MS } from '../../base/duration.ts';
import { parseJson } from '../../base/json/parse.ts';
import { readKeyFile, writeKeyFile } from '../../base/keys/key-file.ts';
import { readNamedFile } from '../../base/named-file.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { firstPolicyHash } from '../../protocol/records/first-policy.ts';
import { type GenesisBlock, readGenesisBlock } from '../../protocol/records/genesis.ts';
import { MAX_TEXT_LENGTH } from '../../protocol/records/record.ts';
import { signRecord, soleSigner } from '../../protocol/records/signed-record.ts';
import { FILES, traceOfNetwork } from '../../server/config/data-folder.ts';
import { LOCK_FILE, lockFolder } from '../../store/lmdb/folder-lock.ts';
import { FIRST_OPERATORS } from '../connection/profiles.ts';

/**
 * In the order in which they are moved into place. The genesis is last, so a staged genesis means that the move
 * is incomplete.
 */
const ENTRIES = [FILES.keys, FILES.config, FILES.genesis];
const AUTHORITY_VALIDITY_MS = 90 * DAY_MS;
/** Of name and version: the id of the first policy contains both, and has to fit into the key of a row. */
const MOST_BYTES_STORED = 1800;

export interface InitOptions {
  readonly dataDir: string;
  readonly networkName: string;
  readonly networkVersion: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Returns 32 new random bytes on each call. */
  readonly randomSeed: () => Buffer;
}

type OperatorSummary = {
  readonly key_id: string;
  readonly tier: string;
  readonly key_file: string;
  readonly public_key: string;
};

export type InitSummary = {
  readonly network_name: string;
  readonly na_public_key: string;
  readonly root_public_key: string;
  readonly genesis_file: string;
  readonly operators: readonly OperatorSummary[];
};

/**
 * Creates all files or none: fails if one of them exists, and builds in a staging folder first. If an earlier,
 * killed process had already built a network of this name, moves that one into place instead.
 */
export function initNetwork(options: InitOptions): InitSummary {
  assertNetworkName(options);
  const dataDir = resolve(options.dataDir);
  const staging = join(dataDir, FILES.staging);
  if (!existsSync(staging)) assertHoldsNoNetwork(dataDir);
  const isNew = !existsSync(dataDir);
  mkdirSync(dirname(dataDir), { recursive: true });
  if (isNew) mkdirSync(dataDir, { mode: 0o700 });
  const lock = lockFolder(dataDir);
  try {
    if (finishStaged(dataDir) === 'finished') {
      const summary = readSummary(dataDir);
      if (summary.network_name === options.networkName) return summary;
    }
    assertHoldsNoNetwork(dataDir);
    const summary = stageNetwork(staging, dataDir, options);
    finishStaged(dataDir);
    return summary;
  } catch (error) {
    if (isNew) rmSync(dataDir, { recursive: true });
    throw error;
  } finally {
    lock.release();
  }
}

/** Other sovereigns must be able to name the network in treaties, successions and on a command line. */
function assertNetworkName({ networkName: name, networkVersion: version }: InitOptions): void {
  const cure = 'choose a short name such as local-mesh';
  if (name === '') throw new Error(`The network name must not be empty; ${cure}`);
  if (name.length > MAX_TEXT_LENGTH) {
    throw new Error(
      `The network name has ${name.length} characters, and no treaty can name more than ${MAX_TEXT_LENGTH}; ${cure}`,
    );
  }
  const bytes = Buffer.byteLength(name + version);
  if (bytes > MOST_BYTES_STORED) {
    throw new Error(
      `The name and the version of the network have ${bytes} bytes, more than ${MOST_BYTES_STORED}; ${cure}`,
    );
  }
  if (/\p{Cc}/u.test(name)) {
    throw new Error(
      `The network name ${JSON.stringify(name)} contains a line feed or another control character, and no treaty can name it; ${cure}`,
    );
  }
}

function stageNetwork(staging: string, dataDir: string, options: InitOptions): InitSummary {
  // Private from the start, and on the same file system.
  mkdirSync(staging, { mode: 0o700 });
  try {
    return writeNetwork(staging, dataDir, options);
  } catch (error) {
    rmSync(staging, { recursive: true });
    throw error;
  }
}

/** Recovers from a killed `init`: a complete network is moved into place, anything else is removed. */
export function finishInterruptedInit(dataDir: string): void {
  if (!existsSync(join(dataDir, FILES.staging))) return;
  const lock = lockFolder(dataDir);
  try {
    finishStaged(dataDir);
  } finally {
    lock.release();
  }
}

/** Names that an unused folder may contain: the lock of a killed `init`, and what a new file system creates. */
const UNUSED_NAMES = [LOCK_FILE, 'lost+found'];

/** How `serve --create` sees the folder; `holds` is the first of other files. */
type FolderUse = 'absent' | 'empty' | 'network' | { readonly holds: string };

export function useOf(dataDir: string): FolderUse {
  if (!existsSync(dataDir)) return 'absent';
  if (!statSync(dataDir).isDirectory()) {
    throw new Error(`The data folder ${dataDir} is not a folder; choose another with --data-dir`);
  }
  if (existsSync(join(dataDir, FILES.genesis))) return 'network';
  const holds = readdirSync(dataDir)
    .sort()
    .find((name) => !UNUSED_NAMES.includes(name));
  return holds === undefined ? 'empty' : { holds };
}

function assertHoldsNoNetwork(dataDir: string): void {
  const found = traceOfNetwork(dataDir);
  if (found === null) return;
  throw new Error(
    `${found} belongs to an existing network, so nothing was written: serve that network with its own genesis and keys, or choose another folder with --data-dir`,
  );
}

/** Only files in the staging folder are ever removed. */
function finishStaged(dataDir: string): 'finished' | 'nothing' {
  const staging = join(dataDir, FILES.staging);
  const isBuilt = existsSync(join(staging, FILES.genesis));
  if (isBuilt) {
    const staged = ENTRIES.filter((entry) => existsSync(join(staging, entry)));
    for (const entry of staged) {
      const target = join(dataDir, entry);
      if (existsSync(target)) throw new Error(`${target} exists, so nothing was moved there`);
      renameSync(join(staging, entry), target);
    }
  }
  rmSync(staging, { recursive: true, force: true });
  return isBuilt ? 'finished' : 'nothing';
}

function readSummary(dataDir: string): InitSummary {
  const genesis = readGenesisBlock(
    parseJson(readNamedFile(join(dataDir, FILES.genesis), MOST_BYTES.settings).toString()),
  );
  if (genesis === null) throw new Error('The genesis block does not have the expected form');
  return summaryOf(dataDir, genesis, (name) =>
    readKeyFile(join(dataDir, FILES.keys, `${name}.pub`)).toString('base64'),
  );
}

function summaryOf(
  dataDir: string,
  genesis: GenesisBlock,
  publicKeyOf: (name: string) => string,
): InitSummary {
  return {
    network_name: genesis.network_name,
    na_public_key: genesis.network_authority.public_key,
    root_public_key: genesis.root_public_key,
    genesis_file: join(dataDir, FILES.genesis),
    operators: FIRST_OPERATORS.map(({ key_id, tier, name }) => ({
      key_id,
      tier,
      key_file: join(dataDir, FILES.keys, `${name}.key`),
      public_key: publicKeyOf(name),
    })),
  };
}

function writeNetwork(folder: string, dataDir: string, options: InitOptions): InitSummary {
  mkdirSync(join(folder, FILES.keys), { mode: 0o700 });
  const root = makeKey(folder, options, 'root');
  const authority = makeKey(folder, options, 'na');
  const operatorKeys = new Map(
    FIRST_OPERATORS.map(({ key_id, name }) => [
      name as string,
      makeKey(folder, options, name, key_id).publicKey,
    ]),
  );
  const genesis = buildGenesis(options, root, authority.publicKey);
  const summary = summaryOf(dataDir, genesis, (name) => operatorKeys.get(name) ?? '');
  writeJson(join(folder, FILES.config), {
    network_name: genesis.network_name,
    operators: summary.operators.map(({ key_id, tier, public_key }) => ({
      key_id,
      tier,
      public_key,
    })),
    // A new network has no clients that only sign version 1.
    admin_signature_v1: 'refuse',
  });
  // Written last, and atomically: it completes the network.
  const path = join(folder, FILES.genesis);
  writeJson(`${path}.new`, genesis);
  renameSync(`${path}.new`, path);
  return summary;
}

/** Writes the key's two files and returns its signer. */
function makeKey(folder: string, options: InitOptions, name: string, keyId?: string): Signer {
  const seed = options.randomSeed();
  const signer = signerFromSeed(seed);
  const id = keyId ?? signer.publicKey;
  const path = join(folder, FILES.keys, name);
  writeKeyFile(`${path}.key`, { kind: `${name} private key`, keyId: id, key: seed });
  const publicKey = Buffer.from(signer.publicKey, 'base64');
  writeKeyFile(`${path}.pub`, { kind: `${name} public key`, keyId: id, key: publicKey });
  return signer;
}

function buildGenesis(options: InitOptions, root: Signer, authorityKey: string): GenesisBlock {
  const { networkName, networkVersion, now } = options;
  const founding = {
    network_name: networkName,
    network_version: networkVersion,
    network_authority: {
      public_key: authorityKey,
      valid_from: formatInstant(now),
      valid_to: formatInstant(now + AUTHORITY_VALIDITY_MS),
    },
  };
  const genesis = readGenesisBlock({
    ...founding,
    root_public_key: root.publicKey,
    policy_manifest: { hash: firstPolicyHash(founding, SHA256) },
  });
  if (genesis === null) throw new Error('A new genesis block is not a GenesisBlock');
  return signRecord(genesis, soleSigner(root));
}

function writeJson(path: string, value: object): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`, { flag: 'wx', flush: true });
}
