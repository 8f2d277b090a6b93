/**
 * How commands reach the authority, and how long they wait for it. They send requests with the HTTP client of Node.js:
 * the global `fetch` takes a tenth of a second of CPU time and 10 MB of memory on first use, which a node agent would
 * never release, and it does not support custom trusted certificates.
 */

import { existsSync, rmSync } from 'node:fs';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent, request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { MOST_BYTES } from '../../base/byte-bounds.ts';
import { inWords } from '../../base/duration.ts';
import { parseJson } from '../../base/json/parse.ts';
import type { JsonValue } from '../../base/json/value.ts';
import { readArgument, readNamedFile } from '../../base/named-file.ts';
import { systemRuntime } from '../../base/runtime.ts';
import { textOf } from '../../client/http.ts';
import type { AnswerBody, Fetch, FetchAnswer, ServerOptions } from '../../client/options.ts';
import { createPublicClient, type PublicClient } from '../../client/public-client.ts';
import { DATA_DIR, JSON_OPTION, type OptionsIn, option } from '../kernel/command.ts';
import { EXIT, failure, onLocalFiles } from '../kernel/errors.ts';
import { replaceFile } from '../kernel/files.ts';
import { serverUrl } from '../kernel/options.ts';
import { printNotice } from '../kernel/output.ts';
import { whileWaiting } from '../kernel/terminal.ts';

/** The total time that a command waits; rate limits of an authority are counted per minute. */
const PATIENCE_MS = 600_000;
/** What a bulk change needs for each item, since operators may usually send 30 changes a minute. */
const PATIENCE_PER_ITEM_MS = 4000;

export const URL_OPTION = option('--url <url>', 'address of the authority', {
  env: 'MESH_URL',
  fallback: 'http://127.0.0.1:8443',
  parse: serverUrl,
});

export const CA_OPTION = option(
  '--ca <file>',
  'PEM file of CA certificates to trust for the authority, instead of those of the system',
  { env: 'MESH_CA' },
);

/** Options of every command that asks an authority. */
export const REACH = [
  URL_OPTION,
  CA_OPTION,
  option(
    '--wait',
    `wait when the authority limits requests or was restored, up to ${inWords(PATIENCE_MS / 1000)} in total`,
    { parse: () => patienceFor(0) },
  ),
] as const;

export const ANYONE = { options: [...REACH, JSON_OPTION], connection: REACH } as const;

export type Reach = OptionsIn<typeof ANYONE.options>;

/** One deadline for all requests of a command that changes this many items: how many milliseconds it has left. */
export function patienceFor(items: number, elapsed = systemRuntime.elapsed): () => number {
  const end = elapsed() + PATIENCE_MS + items * PATIENCE_PER_ITEM_MS;
  return () => end - elapsed();
}

export function serverOf({ url, ca, wait, json }: Reach): ServerOptions {
  const ask = httpFetch(ca);
  const fetch: Fetch = (address, init) =>
    whileWaiting('Waiting for the authority', () => ask(address, init));
  if (wait === undefined) return { url, fetch };
  const onLimited = (ms: number) => {
    if (json) return;
    printNotice(`The authority is limiting requests; retrying in ${inWords(ms / 1000)}`);
  };
  return { url, fetch, patienceMs: wait, onLimited };
}

export function publicClient(options: Reach): PublicClient {
  return createPublicClient(serverOf(options));
}

const MOST_METRICS_BYTES = 16 * 1024 * 1024;
const METRICS_MS = 10_000;

/** The first value of a metric; null if `/metrics`, which may be hidden, does not show it. */
export async function metricOf(
  { url, ca }: Pick<Reach, 'url' | 'ca'>,
  name: string,
): Promise<number | null> {
  const text = await metricsText(url, httpFetch(ca));
  const line = text?.split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length));
}

/** What `/metrics` shows; null if it may not be read from here. */
export async function metricsText(url: string, fetch: Fetch): Promise<string | null> {
  try {
    const signal = AbortSignal.timeout(METRICS_MS);
    const request = { method: 'GET', headers: {}, redirect: 'error', signal } as const;
    const answer = await fetch(`${url.replace(/\/+$/, '')}/metrics`, request);
    return answer.ok ? await textOf(answer, signal, MOST_METRICS_BYTES) : null;
  } catch {
    return null;
  }
}

/** Trusts only the certificates in the file, or the system's certificates without a file. */
export function httpFetch(caFile: string | undefined): Fetch {
  if (caFile === undefined) return (address, init) => asked(address, init, undefined);
  const trusting = new Agent({ ca: certificatesIn(caFile), keepAlive: true });
  return (address, init) => asked(address, init, trusting);
}

/** The text of the file that `--ca` names. */
export function certificatesIn(caFile: string): string {
  return onLocalFiles(() => readArgument(caFile, MOST_BYTES.settings).toString());
}

async function asked(
  address: string,
  init: Parameters<Fetch>[1],
  trusting: Agent | undefined,
): Promise<FetchAnswer> {
  try {
    const answer = await headOf(new URL(address), init, trusting);
    const status = answer.statusCode ?? 0;
    if (status >= 300 && status < 400 && answer.headers.location !== undefined) {
      answer.destroy();
      const { location } = answer.headers;
      throw Object.assign(new Error('unexpected redirect'), { location });
    }
    const { headers } = answer;
    return {
      ok: status >= 200 && status < 300,
      status,
      headers: { get: (name) => headers[name]?.toString() ?? null },
      text: () => text(answer),
      get body() {
        return inPieces(answer);
      },
    };
  } catch (cause) {
    throw new Error('The request failed', { cause });
  }
}

function inPieces(answer: IncomingMessage): AnswerBody {
  const pieces = answer[Symbol.asyncIterator]();
  async function read() {
    const { done, value } = await pieces.next();
    return done === true ? { done: true } : { done: false, value: value as Uint8Array };
  }
  async function cancel() {
    answer.destroy();
  }
  return { getReader: () => ({ read, cancel }) };
}

function headOf(
  url: URL,
  { method, headers, body, signal }: Parameters<Fetch>[1],
  trusting: Agent | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // By default, Node.js sends the body of a DELETE request without its length.
    const length = body !== undefined && { 'content-length': String(Buffer.byteLength(body)) };
    const options = { method, headers: { ...headers, ...length }, signal };
    const request =
      url.protocol === 'https:'
        ? requestHttps(url, { ...options, ...(trusting && { agent: trusting }) }, resolve)
        : requestHttp(url, options, resolve);
    request.once('error', reject);
    request.end(body);
  });
}

export interface ReadingBounds {
  /** Time limit for the whole answer, in milliseconds. */
  readonly longestMs: number;
  readonly mostBytes: number;
  /** Limits the number of JSON values, because a value takes far more memory than its text. */
  readonly mostValues: number;
}

/** A list of a million revocations has about 180 MB and five million values. */
const BOUNDS: ReadingBounds = {
  longestMs: 300_000,
  mostBytes: MOST_BYTES.list,
  mostValues: 8_000_000,
};

/**
 * Reads JSON from an untrusted address; `caFile` is as for `httpFetch`. Rejects with a one-sentence message unless the answer is
 * JSON within the limits.
 */
export async function readJsonUrl(
  address: string,
  caFile: string | undefined,
  { longestMs, mostBytes, mostValues } = BOUNDS,
): Promise<JsonValue> {
  const late = AbortSignal.timeout(longestMs);
  const left = new AbortController();
  const signal = AbortSignal.any([late, left.signal]);
  try {
    const answer = await httpFetch(caFile)(address, {
      method: 'GET',
      headers: {},
      redirect: 'error',
      signal,
    });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    return parseJson(await textOf(answer, signal, mostBytes), mostValues);
  } catch (error) {
    throw failure(
      EXIT.unreachable,
      'unreadable_answer',
      `${address} cannot be read: ${reasonOf(error, late, longestMs)}`,
    );
  } finally {
    left.abort();
  }
}

function reasonOf(error: unknown, late: AbortSignal, longestMs: number): string {
  if (late.aborted) return `it took longer than ${longestMs / 1000} s`;
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

const MOST_ADDRESS_BYTES = 4096;

/**
 * Where a command finds the authority that no option or variable names: a node remembers the address at which it joined,
 * and a data folder in use says where its authority serves.
 */
function addressPath(folder: string): string {
  return join(folder, 'address');
}

export function saveAddress(folder: string, url: string): void {
  ifPossible(() => replaceFile(addressPath(folder), `${url}\n`));
}

export function removeAddress(folder: string): void {
  ifPossible(() => rmSync(addressPath(folder), { force: true }));
}

/** Nothing depends on it but convenience, so a folder that cannot be written needs none: commands then need --url. */
function ifPossible(change: () => void): void {
  try {
    change();
  } catch {
    // A start or a stop goes on.
  }
}

/** Sets the address of a command for which neither an option nor a variable gives one. */
export function findAddress(command: Command): void {
  if (command.getOptionValueSource('url') !== 'default') return;
  const { nodeDir, dataDir = DATA_DIR.defaultValue } = command.opts();
  for (const folder of [nodeDir, dataDir]) {
    const url = typeof folder === 'string' ? addressIn(folder) : null;
    if (url === null) continue;
    command.setOptionValueWithSource('url', url, 'config');
    return;
  }
}

function addressIn(folder: string): string | null {
  const path = addressPath(folder);
  if (!existsSync(path)) return null;
  try {
    return serverUrl(readNamedFile(path, MOST_ADDRESS_BYTES).toString().trim());
  } catch {
    return null;
  }
}
