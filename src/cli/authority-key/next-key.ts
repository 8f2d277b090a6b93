/** The current key of the authority, and the next one in a separate file in the same folder. */
import { existsSync } from 'node:fs';
import { signerFromSeed } from '../../base/crypto/ed25519.ts';
import { keyFileText } from '../../base/keys/key-file.ts';
import { readPrivateKey } from '../../base/keys/read-key.ts';
import { loadGenesis, nextKeyFile, signingKeyFile } from '../../server/config/identity.ts';
import { readSettings } from '../../server/config/settings.ts';
import { saveFile } from '../kernel/files.ts';
import { environment } from '../state/place.ts';

/** The genesis that `serve` would use, and its key, from the given file or the one that `serve` would read. */
export function currentAuthority(dataDir: string, namedFile?: string) {
  const { setting, problems } = readSettings({ dataDir }, environment());
  const [problem] = problems;
  if (problem !== undefined) throw new Error(problem);
  const genesis = loadGenesis(setting, dataDir, false);
  const keyFile = namedFile ?? signingKeyFile(setting, dataDir);
  if (keyFile === null) {
    throw new Error(
      'The settings do not name a key file of the authority: give it with --na-private-key, on a machine where it can be read',
    );
  }
  const signer = signerFromSeed(readPrivateKey(keyFile));
  if (signer.publicKey === genesis.network_authority.public_key) {
    return { genesis, signer, keyFile };
  }
  throw new Error(
    `${keyFile} does not contain the key in the genesis block: give the right file with --na-private-key`,
  );
}

export type NextKey = ReturnType<typeof nextKey>;

/** Never replaces an existing key, because a request for it may be pending. */
export function nextKey(keyFile: string, randomSeed: () => Buffer) {
  const file = nextKeyFile(keyFile);
  const isNew = !existsSync(file);
  if (isNew) saveKey(file, 'next na private key', randomSeed());
  const signer = signerFromSeed(readPrivateKey(file));
  const publicFile = file.replace(/\.key$/, '.pub');
  if (!existsSync(publicFile)) {
    saveKey(publicFile, 'next na public key', Buffer.from(signer.publicKey, 'base64'), signer);
  }
  return { signer, file, isNew };
}

/** Writes the key completely or not at all, even in a crash, and readable only by its owner. */
function saveKey(path: string, kind: string, key: Buffer, signer = signerFromSeed(key)): void {
  const text = keyFileText({ kind, keyId: signer.publicKey, key });
  saveFile(path, text, { isSecret: true, overwrites: false });
}
