/** Reads the root key from a file, for commands that sign with it offline. */
import type { Signer } from '../base/crypto/primitives.ts';
import { readPrivateKey } from '../base/keys/private-key.ts';
import { EXIT, failure, onLocalFiles } from './exit-codes.ts';

/** `file` is the file that contains the public key, `rootPublicKey`. */
export async function readRootKey(
  path: string,
  { rootPublicKey, file }: { readonly rootPublicKey: string; readonly file: string },
): Promise<Signer> {
  const { signerFromSeed } = await import('../base/crypto/ed25519.ts');
  const seed = onLocalFiles(() => readPrivateKey(path));
  const root = signerFromSeed(seed);
  if (root.publicKey === rootPublicKey) return root;
  const isPublic = seed.toString('base64') === rootPublicKey;
  const message = isPublic
    ? `${path} contains the public root key of ${file}: give the private one, from the matching root.key`
    : `${path} is not the root key of ${file}`;
  throw failure(EXIT.unusable, 'local_files', message);
}
