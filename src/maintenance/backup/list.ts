/** Lists the backups in a folder without reading them completely. */
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { parseJson } from '../../base/json/parse.ts';
import { type Manifest, readManifest } from '../../store/stream/manifest.ts';
import { isEncrypted } from './encryption.ts';
import { SUFFIX } from './kept-files.ts';

export interface ListedBackup {
  readonly name: string;
  readonly bytes: number;
  /** The manifest, or why it cannot be read. */
  readonly content: Manifest | 'encrypted' | 'unreadable';
}

/** Sorted by name. */
export async function listBackups(
  folder: string,
  verify: VerifySignature,
): Promise<readonly ListedBackup[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(SUFFIX)).sort();
  const listed: ListedBackup[] = [];
  for (const name of names) {
    const path = join(folder, name);
    const { size } = await stat(path);
    listed.push({ name, bytes: size, content: await contentOf(path, verify) });
  }
  return listed;
}

/** Longer than any manifest. */
const LONGEST_MANIFEST = 1024 ** 2;

async function contentOf(path: string, verify: VerifySignature): Promise<ListedBackup['content']> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LONGEST_MANIFEST), 0);
    const start = buffer.subarray(0, bytesRead);
    if (isEncrypted(start)) return 'encrypted';
    return readManifest(parseJson(start.subarray(0, start.indexOf('\n')).toString()), verify);
  } catch {
    return 'unreadable';
  } finally {
    await file.close();
  }
}
