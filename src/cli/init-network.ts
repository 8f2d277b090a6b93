/** Makes the files of a new network: root, authority and operator keys, the signed genesis, the configuration. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { FILES } from '../config/data-folder.ts';
import { type Signer, signerFromSeed } from '../crypto/ed25519.ts';
import { writeKeyFile } from '../keys/key-file.ts';
import { type GenesisBlock, readGenesisBlock } from '../records/genesis.ts';
import { signRecord } from '../records/signed-record.ts';
import { formatInstant } from '../timestamp.ts';

/** The operators every new network has. */
export const FIRST_OPERATORS = [
  { key_id: 'ops-privileged', tier: 'privileged', name: 'operator-privileged' },
  { key_id: 'ops-standard', tier: 'standard', name: 'operator-standard' },
] as const;

/** In the order they are moved into place: of two initialisations at once, only one can move its keys. */
const ENTRIES = [FILES.keys, FILES.genesis, FILES.config];
const AUTHORITY_VALIDITY_MS = 90 * 24 * 3_600_000;

export interface InitOptions {
  readonly dataDir: string;
  readonly networkName: string;
  readonly networkVersion: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** 32 fresh random bytes at each call. */
  readonly randomSeed: () => Buffer;
}

export type OperatorSummary = {
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

/** All files or none: refuses when one of them exists, and builds aside before moving into place. */
export function initNetwork(options: InitOptions): InitSummary {
  const dataDir = resolve(options.dataDir);
  const found = ENTRIES.map((entry) => join(dataDir, entry)).find((path) => existsSync(path));
  if (found !== undefined) throw new Error(`${found} exists, so nothing was written`);

  const isNew = !existsSync(dataDir);
  mkdirSync(dirname(dataDir), { recursive: true });
  // The temporary folder is private (0700) from its first moment, and on the same file system.
  const staging = mkdtempSync(
    isNew ? join(dirname(dataDir), `.${basename(dataDir)}-`) : join(dataDir, '.init-'),
  );
  try {
    const summary = writeNetwork(staging, dataDir, options);
    if (isNew) renameSync(staging, dataDir);
    else moveEntries(staging, dataDir);
    return summary;
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    throw error;
  }
}

function writeNetwork(folder: string, dataDir: string, options: InitOptions): InitSummary {
  mkdirSync(join(folder, FILES.keys), { mode: 0o700 });
  const root = makeKey(folder, options, 'root');
  const authority = makeKey(folder, options, 'na');
  const operators = FIRST_OPERATORS.map(({ key_id, tier, name }) => ({
    key_id,
    tier,
    key_file: join(dataDir, FILES.keys, `${name}.key`),
    public_key: makeKey(folder, options, name, key_id).publicKey,
  }));
  const genesis = buildGenesis(options, root, authority.publicKey);
  writeJson(join(folder, FILES.genesis), genesis);
  writeJson(join(folder, FILES.config), {
    network_name: genesis.network_name,
    operators: operators.map(({ key_id, tier, public_key }) => ({ key_id, tier, public_key })),
    // A new network has no clients that know version 1 alone.
    admin_signature_v1: 'refuse',
  });
  return {
    network_name: genesis.network_name,
    na_public_key: authority.publicKey,
    root_public_key: root.publicKey,
    genesis_file: join(dataDir, FILES.genesis),
    operators,
  };
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
  const genesis = readGenesisBlock({
    network_name: networkName,
    network_version: networkVersion,
    root_public_key: root.publicKey,
    network_authority: {
      public_key: authorityKey,
      valid_from: formatInstant(now),
      valid_to: formatInstant(now + AUTHORITY_VALIDITY_MS),
    },
    policy_manifest: { hash: 'sha256:placeholder' },
  });
  if (genesis === null) throw new Error('The network name must not be empty');
  return signRecord(genesis, root, root.publicKey);
}

function writeJson(path: string, value: object): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`, { flag: 'wx', flush: true });
}

function moveEntries(staging: string, dataDir: string): void {
  for (const entry of ENTRIES) renameSync(join(staging, entry), join(dataDir, entry));
  rmdirSync(staging);
}
