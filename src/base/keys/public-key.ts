/**
 * Public keys supplied by people. A seed has the same form, and a public key gets published, so a file or text that is,
 * or claims to be, a private key is refused and never echoed.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readNamedFile } from '../named-file.ts';
import { KeyFileError, parseKeyText, readKeyText } from './key-file.ts';
import { parseOpensshKey } from './openssh-key.ts';

const SAYS_PRIVATE =
  /^#.*\b(?:private|secret) key\b|PRIVATE KEY-----|^AGE-SECRET-KEY-|^PuTTY-User-Key-File/im;
const SAYS_PUBLIC = /^#.*\bpublic key\b|PUBLIC KEY-----|^ssh-ed25519 /im;

export function saysPrivate(text: string): boolean {
  return SAYS_PRIVATE.test(text);
}

export function saysPublic(text: string): boolean {
  return SAYS_PUBLIC.test(text);
}

/**
 * The 32 bytes of a public key in a file of ours or of OpenSSH. No message repeats the content of the file. `read` is as for
 * `readKeyText`.
 */
export function readPublicKey(path: string, read = readNamedFile): Buffer {
  const text = readKeyText(path, read);
  const isNamedPrivate = path.endsWith('.key') && !saysPublic(text);
  const key = parseOpensshKey(text) ?? parseKeyText(text);
  if (saysPrivate(text) || isNamedPrivate || (key !== null && isPrivateHalf(path, key))) {
    throw new Error(`${path} holds a private key, and a public one is expected: ${cureFor(path)}`);
  }
  if (key === null) throw new KeyFileError(path);
  return key;
}

function cureFor(path: string): string {
  const publicFile = publicFileOf(path);
  return publicFile === null
    ? 'name the .pub file that was made with it'
    : `name ${publicFile}, which was made with it`;
}

/** Whether the `.pub` file of the same name next to it holds the public key of this key. */
function isPrivateHalf(path: string, key: Buffer): boolean {
  const publicFile = publicFileOf(path);
  if (publicFile === null) return false;
  const published = parseKeyText(readKeyText(publicFile));
  return published?.toString('base64') === publicKeyOf(key);
}

function publicFileOf(path: string): string | null {
  const name = `${path.replace(/\.[^./\\]*$/, '')}.pub`;
  return name !== path && existsSync(name) ? name : null;
}

/** PKCS#8 of an Ed25519 key up to its seed (RFC 8410, 7). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The base64 public key of a seed, computed without our native dependencies. */
export function publicKeyOf(seed: Uint8Array): string {
  const der = Buffer.concat([PKCS8_HEAD, seed]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const { x = '' } = createPublicKey(key).export({ format: 'jwk' });
  return Buffer.from(x, 'base64url').toString('base64');
}

/** What is wrong with a text that is not the base64 of a public key, and what to do: the end of a sentence. */
export function publicKeyProblem(text: string): string {
  if (!existsSync(text)) return 'this is not base64 of 32 bytes';
  const isPrivate = text.endsWith('.key') || saysPrivate(textIn(text));
  return isPrivate
    ? 'that is a private key file: give the key in the .pub file that was made with it'
    : 'that is a file: give the key in it, which is its last line';
}

function textIn(path: string): string {
  try {
    return readKeyText(path);
  } catch {
    return '';
  }
}
