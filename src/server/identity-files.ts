/**
 * Puts the genesis block and the key of a finished succession in place of the earlier ones. Each step may be interrupted:
 * the state says which key signs, and the next start continues here.
 */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { MOST_BYTES } from '../base/byte-bounds.ts';
import { signerFromSeed } from '../base/crypto/ed25519.ts';
import { replaceFileAsync, syncFolderAsync } from '../base/durable-file.ts';
import { messageOf } from '../base/error-message.ts';
import { parseJson } from '../base/json/parse.ts';
import { canonicalJson } from '../base/json/write.ts';
import { readPrivateKey } from '../base/keys/read-key.ts';
import type { Logger } from '../base/log/logger.ts';
import { readNamedFile } from '../base/named-file.ts';
import { createTurns } from '../base/work.ts';
import type { GenesisBlock } from '../protocol/records/genesis.ts';
import { type IdentityFiles, nextKeyFile } from './config/identity.ts';

export interface IdentityFilesOptions {
  readonly files: IdentityFiles;
  /** The genesis block with which this process was started. */
  readonly configured: GenesisBlock;
  readonly logger: Pick<Logger, 'write'>;
}

const turns = createTurns();

/**
 * Call when only the key that the block names signs any more; `former` are the keys that signed before. Calls run one
 * after another, because they write to the same files. The thread is not held while the disk writes.
 */
export function settleIdentityFiles(
  genesis: GenesisBlock,
  former: readonly string[],
  options: IdentityFilesOptions,
): Promise<void> {
  return turns.run(() => settle(genesis, former, options));
}

async function settle(
  genesis: GenesisBlock,
  former: readonly string[],
  options: IdentityFilesOptions,
): Promise<void> {
  const { files, logger } = options;
  try {
    // Otherwise, the next start needs the earlier key, which the configured block names.
    if (await settleGenesis(genesis, options)) {
      await settleKey(genesis.network_authority.public_key, former, options);
    }
  } catch (cause) {
    const what = `${files.genesis ?? 'the genesis block'} or ${files.key ?? 'the key file'}`;
    logger.write(
      'ERROR',
      'succession',
      `${what} cannot be replaced by what the succession has led to; the next start tries again: ${messageOf(cause)}`,
    );
  }
}

/**
 * The block comes first: with it, either key file is accepted at a start. Returns whether the next start will find the
 * block.
 */
async function settleGenesis(
  genesis: GenesisBlock,
  { files, configured, logger }: IdentityFilesOptions,
): Promise<boolean> {
  const path = files.genesis;
  if (path === null) {
    const { public_key: publicKey } = genesis.network_authority;
    if (configured.network_authority.public_key === publicKey) return true;
    logger.write(
      'WARNING',
      'succession',
      'Put the block that GET /genesis serves in the place that the configuration names; until the restart after that, the earlier key is kept',
    );
    return false;
  }
  const stored = parseJson(readNamedFile(path, MOST_BYTES.settings).toString());
  if (canonicalJson(stored) === canonicalJson(genesis)) return true;
  await replaceFileAsync(path, `${JSON.stringify(genesis, null, 2)}\n`, 0o644);
  logger.write('INFO', 'succession', `${path} has the genesis block of the current key`);
  return true;
}

async function settleKey(
  publicKey: string,
  former: readonly string[],
  { files, configured, logger }: IdentityFilesOptions,
): Promise<void> {
  const path = files.key;
  if (path === null) {
    if (configured.network_authority.public_key === publicKey) return;
    logger.write(
      'WARNING',
      'succession',
      `Only the key ${publicKey} signs any more: configure it alone, and destroy the earlier one`,
    );
    return;
  }
  const next = nextKeyFile(path);
  const inNext = publicKeyIn(next);
  // The key comes last, because the next start looks for it to continue here.
  if (inNext === publicKey) {
    if (existsSync(publicFile(next))) renameSync(publicFile(next), publicFile(path));
    renameSync(next, path);
  } else if (inNext !== null && former.includes(inNext)) {
    // It was rolled back.
    rmSync(publicFile(next), { force: true });
    rmSync(next);
  } else return;
  await syncFolderAsync(dirname(path));
  logger.write(
    'INFO',
    'succession',
    'The key file of the authority has the current key; the earlier one is destroyed',
  );
}

function publicFile(keyFile: string): string {
  return keyFile.replace(/\.key$/, '.pub');
}

function publicKeyIn(path: string): string | null {
  return existsSync(path) ? signerFromSeed(readPrivateKey(path)).publicKey : null;
}
