/** Options that several commands share. */
import { InvalidArgumentError, Option } from 'commander';
import type { ProofForm } from '../client/node-client.ts';
import type { OutputOptions } from './output.ts';

/** A day: longer than any sensible liveness, far below what a timer can hold. */
export const LONGEST_INTERVAL_SECONDS = 86_400;

/** Options of every node command. */
export interface FolderOptions extends OutputOptions {
  readonly nodeDir: string;
}

/** Options of the node commands that prove the node's key. */
export interface NodeOptions extends FolderOptions {
  readonly url: string;
  readonly proof: ProofForm;
}

export function jsonOption(): Option {
  return new Option('--json', 'print exactly one JSON object');
}

export function urlOption(): Option {
  return new Option('--url <url>', 'address of the authority')
    .env('MESH_URL')
    .default('http://127.0.0.1:8443')
    .argParser(serverUrl);
}

export function dataDirOption(): Option {
  return new Option('--data-dir <folder>', "the authority's data folder")
    .env('MESH_DATA_DIR')
    .default('./mesh-data');
}

/** The examples that end a command's help. */
export function examples(lines: readonly string[]): string {
  return ['', 'Examples:', ...lines.map((line) => `  $ ${line}`)].join('\n');
}

/** Parses a whole number from 1 to `highest`. */
export function wholeNumber(highest = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^[0-9]+$/.test(text) && value >= 1 && value <= highest) return value;
    const bound = highest === Number.MAX_SAFE_INTEGER ? '1 or more' : `from 1 to ${highest}`;
    throw new InvalidArgumentError(`It must be a whole number, ${bound}.`);
  };
}

/** Gathers the values of an option that may be repeated. */
export function collect(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value];
}

function serverUrl(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new InvalidArgumentError('It must be an http or https URL.');
}
