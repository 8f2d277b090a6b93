/** Backup files: either completely written, synced and read back, or absent. */
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncFolderAsync } from '../../base/durable-file.ts';
import { decrypted, type Encryption, isEncrypted } from './encryption.ts';
import { PARTIAL } from './kept-files.ts';

export interface NewFile {
  readonly path: string;
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Null if the file is not encrypted. */
  readonly encryption: Encryption | null;
  /** Checks the bytes read back from disk; rejects if anything is wrong. */
  check(bytes: AsyncIterable<Uint8Array>): Promise<void>;
}

/** Resolves with the size of the file once it has its final name. */
export async function writeChecked({ path, bytes, encryption, check }: NewFile): Promise<number> {
  const partial = join(dirname(path), `.${basename(path)}${PARTIAL}`);
  try {
    const written = encryption === null ? bytes : await encryption.encrypt(bytes);
    const size = await writeAll(partial, written);
    const stored = createReadStream(partial);
    await check(encryption === null ? stored : await encryption.readBack(stored));
    await rename(partial, path);
    await syncFolderAsync(dirname(path));
    return size;
  } catch (cause) {
    await rm(partial, { force: true });
    throw cause;
  }
}

async function writeAll(path: string, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  // Removes an incomplete file that a killed process left behind.
  await rm(path, { force: true });
  const file = await open(path, 'wx', 0o600);
  try {
    let size = 0;
    for await (const chunk of bytes) {
      await file.writeFile(chunk);
      size += chunk.length;
    }
    await file.sync();
    return size;
  } finally {
    await file.close();
  }
}

/** The decrypted bytes of a backup; `identities` are used if it is encrypted. */
export async function readBackup(
  path: string,
  identities: readonly string[],
): Promise<AsyncIterable<Uint8Array>> {
  if (!isEncrypted(await firstBytes(path))) return createReadStream(path);
  if (identities.length === 0) {
    throw new Error(`${path} is encrypted; pass the file of a matching identity with --identity`);
  }
  return decrypted(createReadStream(path), identities);
}

async function firstBytes(path: string): Promise<Uint8Array> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(64), position: 0 });
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
