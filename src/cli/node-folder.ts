/** The files of a node: its key and its certificate, readable only by its owner. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyFromSeed, newSeed, type SigningKey } from '../client/keys.ts';
import { parseJson } from '../json/parse.ts';
import { readKeyFile, writeKeyFile } from '../keys/key-file.ts';
import { type JoinCertificate, readJoinCertificate } from '../records/join-certificate.ts';

export function keyPath(folder: string): string {
  return join(folder, 'node.key');
}

export function certificatePath(folder: string): string {
  return join(folder, 'certificate.json');
}

export function hasNodeKey(folder: string): boolean {
  return existsSync(keyPath(folder));
}

export function readNodeKey(folder: string): SigningKey {
  return keyFromSeed(readKeyFile(keyPath(folder)));
}

/** Creates the folder if needed, and a key in it; an existing key is never replaced. */
export function makeNodeKey(folder: string): SigningKey {
  const publicPath = join(folder, 'node.pub');
  for (const path of [keyPath(folder), publicPath]) {
    if (existsSync(path)) throw new Error(`${path} exists and is not overwritten`);
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const seed = newSeed();
  const key = keyFromSeed(seed);
  const keyId = key.publicKey;
  writeKeyFile(keyPath(folder), { kind: 'node private key', keyId, key: seed });
  const publicKey = Buffer.from(keyId, 'base64');
  writeKeyFile(publicPath, { kind: 'node public key', keyId, key: publicKey });
  return key;
}

/** Replaces the stored certificate atomically, so that a crash leaves the old or the new one. */
export function saveCertificate(folder: string, certificate: JoinCertificate): void {
  const path = certificatePath(folder);
  const text = `${JSON.stringify(certificate, null, 2)}\n`;
  writeFileSync(`${path}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${path}.new`, path);
}

export function readCertificate(folder: string): JoinCertificate {
  const path = certificatePath(folder);
  if (!existsSync(path)) throw new Error(`${path} does not exist; join the network first`);
  let certificate: JoinCertificate | null;
  try {
    certificate = readJoinCertificate(parseJson(readFileSync(path, 'utf8')));
  } catch {
    certificate = null;
  }
  if (certificate === null) throw new Error(`${path} does not hold a certificate`);
  return certificate;
}
