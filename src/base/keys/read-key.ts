/**
 * Keys supplied by people. The two halves have the same form, and a public key gets published, so a file or text that is,
 * or claims to be, the wrong half is refused, and a private one is never echoed.
 */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readNamedFile } from '../named-file.ts';
import { isExposed, KeyFileError, parseKeyText, readKeyText } from './key-file.ts';

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

/**
 * Ed25519 public keys as OpenSSH writes them: `ssh-ed25519 <base64> [comment]`, where the base64 holds length-prefixed
 * strings.
 */
const TYPE = 'ssh-ed25519';
const KEY_BYTES = 32;

/** The 32 bytes of the key in an OpenSSH line; null if the line is not such a key. */
export function parseOpensshKey(text: string): Buffer | null {
  const [type, blob] = text.trim().split(/\s+/);
  return type === TYPE && blob !== undefined ? keyInBlob(Buffer.from(blob, 'base64')) : null;
}

/** The key in OpenSSH's binary form; null when it is of another type. */
export function keyInBlob(blob: Buffer): Buffer | null {
  const prefix = blob.subarray(0, -KEY_BYTES);
  return prefix.equals(BLOB_PREFIX) ? blob.subarray(-KEY_BYTES) : null;
}

export function blobOfKey(key: Uint8Array): Buffer {
  return Buffer.concat([BLOB_PREFIX, key]);
}

/** A string of the SSH protocols: its length in four bytes, then its bytes. */
export function sshString(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const BLOB_PREFIX = Buffer.concat([sshString(Buffer.from(TYPE)), Buffer.of(0, 0, 0, KEY_BYTES)]);
