import { readNamedFile } from '../named-file.ts';
import { KeyFileError, parseKeyText, readKeyText } from './key-file.ts';
import { isExposed } from './key-permissions.ts';
import { saysPublic } from './public-key.ts';

/** The 32-byte seed in a private key file; `read` is as for `readKeyText`. Throws when other users can open the file. */
export function readPrivateKey(path: string, read = readNamedFile): Buffer {
  const text = readKeyText(path, read);
  if (saysPublic(text) || path.endsWith('.pub')) {
    throw new Error(
      `${path} holds a public key, and a private one is expected: name the .key file that was made with it`,
    );
  }
  const seed = parseKeyText(text);
  if (seed === null) throw new KeyFileError(path);
  if (!isExposed(path)) return seed;
  throw new Error(`The key file ${path} can be opened by other users; run chmod 600 ${path}`);
}
