/** The identity of the authority: its genesis block and its signing key [core-7]. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { signerFromSeed, verifySignature } from '../crypto/ed25519.ts';
import type { Signer } from '../crypto/primitives.ts';
import { parseJson } from '../json/parse.ts';
import { parseKeyText, readKeyFile } from '../keys/key-file.ts';
import { type GenesisBlock, isSignedByRoot, readGenesisBlock } from '../records/genesis.ts';
import { FILES } from './data-folder.ts';
import type { Setting } from './options.ts';

export function loadGenesis(
  setting: Setting,
  dataDir: string,
  allowUnsigned: boolean,
): GenesisBlock {
  const genesis = readGenesisBlock(parsed(genesisText(setting, dataDir)));
  if (genesis === null) throw new Error('The genesis block does not have the expected form');
  if (!allowUnsigned && !isSignedByRoot(genesis, verifySignature)) {
    throw new Error(
      'The genesis block has no valid root signature; --allow-unsigned-genesis starts all the same',
    );
  }
  return genesis;
}

function genesisText(setting: Setting, dataDir: string): string {
  const inline = setting('genesisJson');
  const file = setting('genesis');
  if (file === null && inline !== null) return inline;
  const path = file ?? join(dataDir, FILES.genesis);
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new Error(`The genesis file ${path} cannot be read; mesh-na init makes one`);
  }
}

function parsed(text: string) {
  try {
    return parseJson(text);
  } catch {
    throw new Error('The genesis block is not valid JSON');
  }
}

/** The signing key of the authority. */
export interface SigningKey {
  readonly signer: Signer;
  /** For a signer on another thread. A function, so that the seed is never printed by mistake. */
  readonly signingSeed: () => Uint8Array;
}

export function loadSigningKey(
  setting: Setting,
  dataDir: string,
  genesis: GenesisBlock,
): SigningKey {
  const seed = readSeed(setting, dataDir);
  const signer = signerFromSeed(seed);
  if (signer.publicKey !== genesis.network_authority.public_key) {
    throw new Error('The authority’s private key is not the one the genesis block names');
  }
  return { signer, signingSeed: () => seed };
}

/** The file of the authority's private key; null when the key is given as text. */
export function signingKeyFile(setting: Setting, dataDir: string): string | null {
  const file = setting('naPrivateKey');
  if (file === null && setting('naPrivateKeyText') !== null) return null;
  return file ?? join(dataDir, FILES.naKey);
}

function readSeed(setting: Setting, dataDir: string): Buffer {
  const file = signingKeyFile(setting, dataDir);
  if (file !== null) return readKeyFile(file);
  const seed = parseKeyText(setting('naPrivateKeyText') ?? '');
  if (seed === null) throw new Error('NA_PRIVATE_KEY is not base64 of 32 bytes');
  return seed;
}
