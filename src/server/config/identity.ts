/** The identity of the authority: its genesis block and its signing key [core-7]. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { signerFromSeed, verifySignature } from '../../base/crypto/ed25519.ts';
import { messageOf } from '../../base/error-message.ts';
import { parseJson } from '../../base/json/parse.ts';
import { parseKeyText } from '../../base/keys/key-file.ts';
import { readPrivateKey } from '../../base/keys/read-key.ts';
import { readNamedFile } from '../../base/named-file.ts';
import type { KeySource } from '../../base/signer/authority-signer.ts';
import { socketPath } from '../../base/signer/protocol.ts';
import {
  type GenesisBlock,
  isSignedByRoot,
  readGenesisBlock,
} from '../../protocol/records/genesis.ts';
import { FILES, traceOfNetwork } from './data-folder.ts';
import type { Setting } from './options.ts';

export function loadGenesis(
  setting: Setting,
  dataDir: string,
  allowUnsigned: boolean,
): GenesisBlock {
  const { content, place } = genesisSource(setting, dataDir);
  const cure = `restore ${place} from a copy that you trust`;
  const value = typeof content === 'string' ? parsed(content, cure) : content;
  const genesis = readGenesisBlock(value);
  if (genesis === null) {
    throw new Error(`The genesis block does not have the expected form; ${cure}`);
  }
  // The message does not mention `--allow-unsigned-genesis`, which would help an attacker who altered the block.
  if (!allowUnsigned && !isSignedByRoot(genesis, verifySignature)) {
    throw new Error(
      `The genesis block has no valid root signature, so it is not what the root key signed; ${cure}`,
    );
  }
  return genesis;
}

interface GenesisSource {
  /** The text of the genesis block, or the block itself. */
  readonly content: string | object;
  /** The file, variable or configuration member that holds it. */
  readonly place: string;
}

function genesisSource(setting: Setting, dataDir: string): GenesisSource {
  const inline = setting('genesisJson');
  const file = setting('genesis');
  if (file === null && inline !== null) {
    return { content: inline, place: setting.labelOf('genesisJson') };
  }
  const path = file ?? join(dataDir, FILES.genesis);
  try {
    return { content: readNamedFile(path, MOST_BYTES.settings).toString(), place: path };
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(
      `The genesis file ${path} cannot be read (${code})${readingCure(code, file === null ? dataDir : null)}`,
    );
  }
}

/** `dataDir` is null if the genesis block is not at its default place. */
function readingCure(code: string | undefined, dataDir: string | null): string {
  if (code === 'EACCES') return '; let the user of this process read it';
  if (code !== 'ENOENT') return '';
  if (dataDir === null) return '; name the file of your network';
  const trace = traceOfNetwork(dataDir);
  if (trace === null) {
    return `: for a new network run mesh-na init --data-dir ${dataDir}; if there was one, mount its volume, or restore its keys and a backup`;
  }
  return `, although ${trace} belongs to a network: restore its ${FILES.genesis}, ${FILES.config} and ${FILES.keys}/`;
}

function parsed(text: string, cure: string) {
  try {
    return parseJson(text);
  } catch {
    throw new Error(`The genesis block is not valid JSON; ${cure}`);
  }
}

/** The signing key of the authority, and the places of its keys. */
export interface SigningKey {
  /** Base64, as in the genesis block. */
  readonly publicKey: string;
  /**
   * All keys that are held now. A function, because the next key may be created at any time, and so that no seed is
   * printed by mistake.
   */
  readonly keySource: () => KeySource;
}

/** `genesis` is null if there is none to compare the key with. */
export function loadSigningKey(
  setting: Setting,
  dataDir: string,
  genesis: GenesisBlock | null,
): SigningKey | null {
  const path = signerPath(setting);
  const seeds = path === null ? createSeeds(setting, dataDir) : () => [];
  if (genesis === null) return null;
  const { public_key: publicKey } = genesis.network_authority;
  if (path !== null) return { publicKey, keySource: () => ({ kind: 'signer', path }) };
  const held = seeds();
  if (!held.some((seed) => signerFromSeed(seed).publicKey === publicKey)) {
    if (held[0]?.toString('base64') === publicKey) {
      throw new Error(
        'Expected the authority’s private key but got its public key; name its .key file',
      );
    }
    throw new Error(
      `The authority’s private key is not that of ${publicKey}, which the genesis block names: restore that key, or configure the genesis block of the key that replaced it`,
    );
  }
  return { publicKey, keySource: () => ({ kind: 'seeds', seeds: seeds() }) };
}

/** The socket of the signer that holds the key; null when this process reads the key itself. */
function signerPath(setting: Setting): string | null {
  const address = setting('signer');
  if (address === null) return null;
  const label = setting.labelOf('signer');
  for (const name of ['naPrivateKey', 'naPrivateKeyText'] as const) {
    if (setting(name) === null) continue;
    throw new Error(
      `${setting.labelOf(name)} cannot be combined with ${label}, which provides the key`,
    );
  }
  const path = socketPath(address);
  if (path !== null) return path;
  throw new Error(`${label} must be a socket such as unix:/run/mesh-na/signer.sock`);
}

/** The file of the authority's private key; null when this process reads no such file. */
export function signingKeyFile(setting: Setting, dataDir: string): string | null {
  if (setting('signer') !== null) return null;
  const file = setting('naPrivateKey');
  if (file === null && setting('naPrivateKeyText') !== null) return null;
  return file ?? join(dataDir, FILES.naKey);
}

/** The file of the next key, which `mesh-na authority-key prepare` creates next to that of the current one. */
export function nextKeyFile(keyFile: string): string {
  return `${keyFile.replace(/\.key$/, '')}.next.key`;
}

/**
 * Why the file of the next key cannot be used; null if there is none, or if it can. It must not prevent a start: the
 * current key signs without it.
 */
export function nextKeyProblem(setting: Setting, dataDir: string): string | null {
  if (setting('signer') !== null) return null;
  try {
    readNextSeed(setting, dataDir);
    return null;
  } catch (cause) {
    return messageOf(cause);
  }
}

/**
 * Reads the seeds of the current and the next key each time: during a succession, the files change while the service
 * runs. A key that was read once and is no longer found stays in use.
 */
function createSeeds(setting: Setting, dataDir: string): () => readonly Buffer[] {
  let first = readSeed(setting, dataDir);
  return () => {
    first = unlessFailing(() => readSeed(setting, dataDir)) ?? first;
    const next = unlessFailing(() => readNextSeed(setting, dataDir));
    return next === null ? [first] : [first, next];
  };
}

function unlessFailing<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Null if there is no next key. */
function readNextSeed(setting: Setting, dataDir: string): Buffer | null {
  const file = nextKeyFileIn(setting, dataDir);
  return existsSync(file) ? readPrivateKey(file) : null;
}

/** Where the next key is, if there is one and this process reads the keys itself. */
export function nextKeyFileIn(setting: Setting, dataDir: string): string {
  return nextKeyFile(signingKeyFile(setting, dataDir) ?? join(dataDir, FILES.naKey));
}

function readSeed(setting: Setting, dataDir: string): Buffer {
  const file = signingKeyFile(setting, dataDir);
  if (file !== null) return readPrivateKey(file);
  const seed = parseKeyText(setting('naPrivateKeyText') ?? '');
  if (seed !== null) return seed;
  throw new Error(`${setting.labelOf('naPrivateKeyText')} is not base64 of 32 bytes`);
}

/** Files of the data folder that the service may replace; null where the configuration names another place. */
export interface IdentityFiles {
  readonly genesis: string | null;
  readonly key: string | null;
}

export function ownIdentityFiles(setting: Setting, dataDir: string): IdentityFiles {
  const genesis = join(dataDir, FILES.genesis);
  const key = join(dataDir, FILES.naKey);
  const named = setting('genesis');
  const isOwnGenesis =
    named === null ? setting('genesisJson') === null : isSamePath(named, genesis);
  const keyFile = signingKeyFile(setting, dataDir);
  const isOwnKey = keyFile !== null && isSamePath(keyFile, key);
  return { genesis: isOwnGenesis ? genesis : null, key: isOwnKey ? key : null };
}

function isSamePath(one: string, other: string): boolean {
  return resolve(one) === resolve(other);
}
