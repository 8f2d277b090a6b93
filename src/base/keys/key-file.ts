/** Key files [core-7]: comment lines, then one base64 line of a 32-byte seed or public key. */
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MOST_BYTES } from '../byte-bounds.ts';
import { decodeBase64 } from '../crypto/base64.ts';
import { readNamedFile } from '../named-file.ts';

const KEY_BYTES = 32;

interface KeyFileContent {
  /** What the key is, in words: "node private key". */
  readonly kind: string;
  readonly keyId: string;
  readonly key: Uint8Array;
}

/** Reads the 32 bytes of a private (seed) or public key file. No message repeats the content of the file. */
export function readKeyFile(path: string): Buffer {
  const key = parseKeyText(readKeyText(path));
  if (key === null) throw new KeyFileError(path);
  return key;
}

/** `read` is `readArgument` for an argument of a command, which may be a pipe. */
export function readKeyText(path: string, read = readNamedFile): string {
  try {
    return read(path, MOST_BYTES.key).toString();
  } catch (error) {
    throw new Error(`The key file ${path} cannot be read (${systemCode(error)})`);
  }
}

export class KeyFileError extends Error {
  constructor(path: string) {
    super(`The key file ${path} does not hold the canonical base64 of ${KEY_BYTES} bytes`);
  }
}

/** The 32 bytes in key-file text; null when there are none. */
export function parseKeyText(text: string): Buffer | null {
  const lines = text.split('\n').map((line) => line.trim());
  return decodeBase64(lines.filter((line) => !line.startsWith('#')).join(''), KEY_BYTES);
}

/** Writes a new key file with access for its owner only; an existing file is never replaced. */
export function writeKeyFile(path: string, content: KeyFileContent): void {
  const text = keyFileText(content);
  try {
    writeFileSync(path, text, { mode: 0o600, flag: 'wx', flush: true });
  } catch (error) {
    const code = systemCode(error);
    if (code === 'EEXIST')
      throw new Error(`The key file ${path} already exists and is not overwritten`);
    throw new Error(`The key file ${path} cannot be written (${code})`);
  }
}

/** The text of a key file, for callers that need more than `writeKeyFile` when writing it. */
export function keyFileText({ kind, keyId, key }: KeyFileContent): string {
  if (key.length !== KEY_BYTES) throw new Error(`A key must have ${KEY_BYTES} bytes`);
  if (/[\r\n]/.test(kind + keyId)) throw new Error('A key file comment must be one line');
  return `# ${kind}\n# key id: ${keyId}\n${Buffer.from(key).toString('base64')}\n`;
}

function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown cause';
}

const OTHERS = 0o007;

/** Those key files, in the folder and among the other paths, that every user of the machine can open. */
export function exposedKeyFiles(folder: string, others: readonly string[]): string[] {
  return [...new Set([...keyFilesIn(folder), ...others])].filter(isExposed);
}

function keyFilesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.key'))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Whether users other than its owner and group can open the file. */
export function isExposed(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHERS) !== 0;
}
