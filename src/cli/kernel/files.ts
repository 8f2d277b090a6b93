/** Files that commands read and save. After a crash or failure, a file is either unchanged or complete. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { parseJsonBytes } from '../../base/json/bytes.ts';
import { parseJson } from '../../base/json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { readArgument, readNamedFile, tooLong } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { createVerifier } from '../../client/offline.ts';
import { type GenesisBlock, readGenesisBlock } from '../../protocol/records/genesis.ts';
import { EXIT, failure, usageFailure } from './errors.ts';

/** Null when there is no file. Throws when it does not contain `what`, because damaged differs from absent. */
export function readSaved<T>(
  path: string,
  read: (value: unknown) => T | null,
  what: string,
): T | null {
  if (!existsSync(path)) return null;
  const record = read(valueIn(readNamedFile(path, MOST_BYTES.list).toString()));
  if (record === null) throw new Error(`${path} does not contain ${what}`);
  return record;
}

function valueIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}

export interface SaveOptions {
  /** Only its owner can read it. */
  readonly isSecret: boolean;
  /** Whether an existing file may be overwritten. */
  readonly overwrites: boolean;
}

/** Saves text, or pieces of it, completely or not at all. */
export function saveFile(
  path: string,
  text: string | Iterable<string>,
  options: SaveOptions,
): void {
  const draft = openDraft(path, options);
  try {
    for (const piece of typeof text === 'string' ? [text] : text) draft.write(piece);
    draft.keep();
  } finally {
    draft.close();
  }
}

/** The same for pieces that arrive asynchronously. */
export async function saveStream(
  path: string,
  pieces: AsyncIterable<string>,
  options: SaveOptions,
): Promise<void> {
  const draft = openDraft(path, options);
  try {
    for await (const piece of pieces) draft.write(piece);
    draft.keep();
  } finally {
    draft.close();
  }
}

interface Draft {
  write(piece: string): void;
  /** Flushes the file to disk and gives it its final name. */
  keep(): void;
  /** Removes the file unless it was kept. */
  close(): void;
}

function openDraft(path: string, options: SaveOptions): Draft {
  const existing = statSync(path, { throwIfNoEntry: false });
  // Write to a pipe or device instead of replacing it.
  return existing === undefined || existing.isFile() ? draftOfFile(path, options) : openPipe(path);
}

function openPipe(path: string): Draft {
  const file = openSync(path, 'w');
  return {
    write: (piece) => writeFileSync(file, piece),
    keep: () => undefined,
    close: () => closeSync(file),
  };
}

function draftOfFile(path: string, { isSecret, overwrites }: SaveOptions): Draft {
  // An unpredictable new name, so that nobody can redirect the write in a shared folder.
  const draft = `${path}.${systemRuntime.uuid()}`;
  const file = openSync(draft, 'wx', isSecret ? 0o600 : 0o666);
  return {
    write: (piece) => writeFileSync(file, piece),
    keep() {
      fsyncSync(file);
      if (overwrites) renameSync(draft, existsSync(path) ? realpathSync(path) : path);
      else nameNew(draft, path);
    },
    close() {
      closeSync(file);
      rmSync(draft, { force: true });
    },
  };
}

/** Fails if the file was created in the meantime, as a link does and a rename does not. */
function nameNew(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw error;
    // FAT and exFAT have no links: the name is taken first.
    closeSync(openSync(path, 'wx', 0o600));
    renameSync(draft, path);
  }
}

/** Replaces one of the program's own files. */
export function replaceFile(path: string, text: string): void {
  saveFile(path, text, { isSecret: true, overwrites: true });
}

/** Throws when it is foreseeable that `saveFile` would fail. */
export function assertCanSave(path: string, { overwrites }: Pick<SaveOptions, 'overwrites'>): void {
  const existing = statSync(path, { throwIfNoEntry: false });
  if (existing?.isDirectory()) throw new Error(`${path} is a folder`);
  if (existing?.isFile() && !overwrites)
    throw new Error(`${path} exists; use --force to overwrite it`);
  const written = existing === undefined || existing.isFile() ? dirname(resolve(path)) : path;
  try {
    accessSync(written, constants.W_OK);
  } catch (error) {
    throw new Error(`${written} cannot be written (${systemCode(error)})`);
  }
}

export function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

/** The JSON object in the file, or on standard input when the path is `-`; a signed list may be longer than a record. */
export async function readJsonFile(
  path: string,
  mostBytes: number = MOST_BYTES.record,
): Promise<JsonObject> {
  const value = await readJson(path, mostBytes);
  if (!isJsonObject(value)) throw notHolding(path, 'a JSON object');
  return value;
}

/** The JSON list of objects in the file, or on standard input when the path is `-`. */
export async function readJsonList(path: string): Promise<readonly JsonObject[]> {
  const value = await readJson(path, MOST_BYTES.record);
  if (Array.isArray(value) && value.every(isJsonObject)) return value;
  throw notHolding(path, 'a JSON list of objects');
}

/** The JSON objects in the files, of which one may be standard input; undefined where no file is named. */
export async function readJsonFiles<Paths extends readonly (string | undefined)[]>(
  ...paths: Paths
): Promise<{ readonly [Index in keyof Paths]: JsonObject | Exclude<Paths[Index], string> }> {
  if (paths.filter((path) => path === '-').length > 1) {
    throw usageFailure('Only one of the files can be standard input');
  }
  const read = paths.map((path) => (path === undefined ? undefined : readJsonFile(path)));
  return (await Promise.all(read)) as {
    [Index in keyof Paths]: JsonObject | Exclude<Paths[Index], string>;
  };
}

/** Some editors put it before UTF-8. */
const MARK = Buffer.from('\u{feff}');

async function readJson(path: string, mostBytes: number): Promise<JsonValue> {
  let bytes: Buffer | undefined;
  try {
    bytes = await bytesOf(path, mostBytes);
    return parseJsonBytes(bytes);
  } catch (error) {
    const isMarked = bytes?.subarray(0, MARK.length).equals(MARK) === true;
    const wrong = isMarked ? 'it begins with a byte order mark; save it without one' : null;
    const cause = wrong ?? (error instanceof SyntaxError ? error.message : systemCode(error));
    throw unusable(`${nameOf(path)} cannot be read as JSON (${cause})`);
  }
}

/** What is in the file, or on standard input when the path is `-`. */
export async function bytesOf(path: string, mostBytes: number): Promise<Buffer> {
  if (path !== '-') return readArgument(path, mostBytes);
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of process.stdin as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > mostBytes) throw tooLong(nameOf(path), mostBytes);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function nameOf(path: string): string {
  return path === '-' ? 'Standard input' : path;
}

/** The error for a readable file with the wrong content. */
export function notHolding(path: string, what: string, cure: string | null = null): Error {
  const message = `${nameOf(path)} does not contain ${what}`;
  return failure(EXIT.unusable, 'local_files', message, cure);
}

/** The member that only this kind of record has. */
const RECORDS: Readonly<Record<string, string>> = {
  treaty: 'treaty_id',
  attestation: 'attestation_id',
  feed: 'feed_id',
  genesis: 'root_public_key',
  certificate: 'cert_id',
  'revocation list': 'revoked_certificates',
};

/** A record of this kind in a file that may be confused with others. */
export async function readRecordFile(
  kind: string,
  path: string,
  mostBytes?: number,
): Promise<JsonObject> {
  const record = await readJsonFile(path, mostBytes);
  assertRecord(path, kind, record);
  return record;
}

/** Refuses a record of another known kind, of which an authority would say only that it is malformed. */
export function assertRecord(path: string, kind: string, record: JsonObject): void {
  const own = RECORDS[kind];
  if (own === undefined || own in record) return;
  const [other] = Object.entries(RECORDS).find(([, member]) => member in record) ?? [];
  if (other !== undefined)
    throw unusable(
      `${nameOf(path)} holds a record of another kind (${other}), and the ${kind} is expected`,
    );
}

function unusable(message: string): Error {
  return failure(EXIT.unusable, 'local_files', message);
}

/** The genesis in a file that its user vouches for. */
export async function readGenesisFile(file: string): Promise<GenesisBlock> {
  const genesis = readGenesisBlock(await readJsonFile(file));
  if (genesis === null || createVerifier().genesis(genesis) !== 'valid') {
    throw notHolding(file, 'a genesis that is signed by its root key');
  }
  return genesis;
}
