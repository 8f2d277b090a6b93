import { readKeyFile } from './key-file.ts';
import { isExposed } from './key-permissions.ts';

/** The 32-byte seed in a private key file. Throws when other users of the machine can open it. */
export function readPrivateKey(path: string): Buffer {
  const seed = readKeyFile(path);
  if (!isExposed(path)) return seed;
  throw new Error(`The key file ${path} can be opened by other users; run chmod 600 ${path}`);
}
