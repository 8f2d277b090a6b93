/** Reads records from files, preserving how numbers are written so that signatures stay valid. */

import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { parseJsonBytes } from '../../base/json/bytes.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { readArgument, tooLong } from '../../base/named-file.ts';
import { createVerifier } from '../../client/offline.ts';
import { type GenesisBlock, readGenesisBlock } from '../../protocol/records/genesis.ts';
import { EXIT, failure, usageFailure } from './errors.ts';
import { systemCode } from './saved-file.ts';

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

async function readJson(path: string, mostBytes: number): Promise<JsonValue> {
  try {
    return parseJsonBytes(await bytesOf(path, mostBytes));
  } catch (error) {
    const cause = error instanceof SyntaxError ? error.message : systemCode(error);
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
export function notHolding(path: string, what: string): Error {
  return unusable(`${nameOf(path)} does not contain ${what}`);
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
