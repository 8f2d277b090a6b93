/** The identity of the authority: its genesis block and its signing key [core-7]. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signerFromSeed, verifySignature } from '../../base/crypto/ed25519.ts';
import { parseJson } from '../../base/json/parse.ts';
import { parseKeyText } from '../../base/keys/key-file.ts';
import { readPrivateKey } from '../../base/keys/private-key.ts';
import { socketPath } from '../../base/signer/address.ts';
import type { KeySource } from '../../base/signer/authority-signer.ts';
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
  // Anyone who altered it would want to be let in: no hint says how.
  if (!allowUnsigned && !isSignedByRoot(genesis, verifySignature)) {
    throw new Error(
      `The genesis block has no valid root signature, so it is not what the root key signed; ${cure}`,
    );
  }
  return genesis;
}

interface GenesisSource {
  /** Its text, or itself. */
  readonly content: string | object;
  /** Its file, or the variable or member that it is. */
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
    return { content: readFileSync(path, 'utf8'), place: path };
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new Error(
      `The genesis file ${path} cannot be read (${code})${readingCure(code, file === null ? dataDir : null)}`,
    );
  }
}

/** Null for a genesis that is not where a new network has its own. */
function readingCure(code: string | undefined, dataDir: string | null): string {
  if (code === 'EACCES') return '; let the user of this process read it';
  if (code !== 'ENOENT') return '';
  const trace = dataDir === null ? null : traceOfNetwork(dataDir);
  if (trace === null)
    return dataDir === null ? '; name the one of the network' : '; mesh-na init makes one';
  return `, while ${trace} is of a network: bring its ${FILES.genesis}, ${FILES.config} and ${FILES.keys}/ there`;
}

function parsed(text: string, cure: string) {
  try {
    return parseJson(text);
  } catch {
    throw new Error(`The genesis block is not valid JSON; ${cure}`);
  }
}

/** The signing key of the authority. */
export interface SigningKey {
  /** Base64, as the genesis names it. */
  readonly publicKey: string;
  /** A function, so that the seed is never printed by mistake. */
  readonly keySource: () => KeySource;
}

/** The key is also read where there is no genesis to compare it with; null then. */
export function loadSigningKey(
  setting: Setting,
  dataDir: string,
  genesis: GenesisBlock | null,
): SigningKey | null {
  const held = signerPath(setting) ?? readSeed(setting, dataDir);
  if (genesis === null) return null;
  const { public_key: publicKey } = genesis.network_authority;
  if (typeof held === 'string') {
    return { publicKey, keySource: () => ({ kind: 'signer', address: { path: held, publicKey } }) };
  }
  if (signerFromSeed(held).publicKey !== publicKey) {
    if (held.toString('base64') === publicKey) {
      throw new Error(
        'The authority’s public key was given where its private one is expected: name its .key file',
      );
    }
    throw new Error('The authority’s private key is not the one the genesis block names');
  }
  return { publicKey, keySource: () => ({ kind: 'seed', seed: held }) };
}

/** The socket of the signer that holds the key; null when this process reads the key itself. */
export function signerPath(setting: Setting): string | null {
  const address = setting('signer');
  if (address === null) return null;
  const label = setting.labelOf('signer');
  for (const name of ['naPrivateKey', 'naPrivateKeyText'] as const) {
    if (setting(name) === null) continue;
    throw new Error(`${setting.labelOf(name)} is of no use with ${label}, which holds the key`);
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

function readSeed(setting: Setting, dataDir: string): Buffer {
  const file = signingKeyFile(setting, dataDir);
  if (file !== null) return readPrivateKey(file);
  const seed = parseKeyText(setting('naPrivateKeyText') ?? '');
  if (seed !== null) return seed;
  throw new Error(`${setting.labelOf('naPrivateKeyText')} is not base64 of 32 bytes`);
}
