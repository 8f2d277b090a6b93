/** Records in files: read and written token by token, so that a record keeps its signature. */
import { readFileSync, writeFileSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { parseJsonBytes } from '../json/bytes.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/value.ts';
import { jsonText } from '../json/write.ts';
import { EXIT, failure } from './exit-codes.ts';

/** The JSON object in the file, or on standard input when the path is `-`. */
export async function readJsonFile(path: string): Promise<JsonObject> {
  const name = path === '-' ? 'Standard input' : path;
  let value: JsonValue;
  try {
    value = parseJsonBytes(path === '-' ? await buffer(process.stdin) : readFileSync(path));
  } catch (error) {
    const cause = error instanceof SyntaxError ? error.message : systemCode(error);
    throw unusable(`${name} cannot be read as JSON (${cause})`);
  }
  if (!isJsonObject(value)) throw unusable(`${name} does not hold a JSON object`);
  return value;
}

/** Writes the record to the file; `made` says what is lost to the user if that fails. */
export function saveJsonFile(path: string, record: JsonObject, made: string): void {
  try {
    writeFileSync(path, `${jsonText(record)}\n`);
  } catch (error) {
    throw unusable(`${made}, but ${path} cannot be written (${systemCode(error)})`);
  }
}

function unusable(message: string): Error {
  return failure(EXIT.unusable, 'local_files', message);
}

function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
