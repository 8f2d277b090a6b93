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
    return { content: readFileSync(path, 'utf8'), place: path };
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
  const trace = dataDir === null ? null : traceOfNetwork(dataDir);
  if (trace === null)
    return dataDir === null ? '; name the file of your network' : '; create one with mesh-na init';
  return `, although ${trace} belongs to a network: restore its ${FILES.genesis}, ${FILES.config} and ${FILES.keys}/`;
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
  /** Base64, as in the genesis block. */
  readonly publicKey: string;
  /** A function, so that the seed is never printed by mistake. */
  readonly keySource: () => KeySource;
}

/** `genesis` is null if there is none to compare the key with. */
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
        'Expected the authority’s private key but got its public key; name its .key file',
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

function readSeed(setting: Setting, dataDir: string): Buffer {
  const file = signingKeyFile(setting, dataDir);
  if (file !== null) return readPrivateKey(file);
  const seed = parseKeyText(setting('naPrivateKeyText') ?? '');
  if (seed !== null) return seed;
  throw new Error(`${setting.labelOf('naPrivateKeyText')} is not base64 of 32 bytes`);
}
