/**
 * A request as the `fetch` of Node.js sends it, for a fifth of its processor time: the tests send so many that `fetch`
 * takes longer than what answers it.
 */
import { type ClientRequestArgs, Agent as HttpAgent, request as overHttp } from 'node:http';
import { Agent as HttpsAgent, request as overHttps } from 'node:https';
import { gunzipSync, inflateSync } from 'node:zlib';

export interface ExchangeInit {
  readonly method: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface Exchanged {
  readonly status: number;
  readonly headers: Headers;
  /** Of the body, which is not compressed any more. */
  readonly bytes: Buffer;
}

/** What `fetch` adds. */
const ADDED = {
  accept: '*/*',
  'accept-language': '*',
  'sec-fetch-mode': 'cors',
  'user-agent': 'node',
  'accept-encoding': 'gzip, deflate',
} as const;
const TEXT = 'text/plain;charset=UTF-8';

/** A connection that is idle for so long is not used again. */
const KEPT = { keepAlive: true, timeout: 4000 } as const;
const http = new HttpAgent(KEPT);
const https = new HttpsAgent(KEPT);

/** Follows no redirection; rejects with a `TypeError` when there is no whole answer. */
export function exchange(address: string, init: ExchangeInit): Promise<Exchanged> {
  const { method, body, signal } = init;
  const url = new URL(address);
  const headers = { ...ADDED, ...bodyHeaders(body), ...lowered(init.headers) };
  const options: ClientRequestArgs = { method, headers, ...(signal && { signal }) };
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(cause.name === 'AbortError' ? cause : new TypeError(cause.message, { cause }));
    const outgoing =
      url.protocol === 'https:'
        ? overHttps(url, { ...options, agent: https })
        : overHttp(url, { ...options, agent: http });
    outgoing.on('error', fail);
    outgoing.on('response', (incoming) => {
      const pieces: Buffer[] = [];
      incoming.on('data', (piece: Buffer) => pieces.push(piece));
      incoming.on('error', fail);
      incoming.on('end', () => {
        const received = headersOf(incoming.rawHeaders);
        const bytes = plain(Buffer.concat(pieces), received.get('content-encoding'));
        resolve({ status: incoming.statusCode ?? 0, headers: received, bytes });
      });
    });
    outgoing.end(body);
  });
}

function bodyHeaders(body: string | undefined) {
  if (body === undefined) return {};
  return { 'content-type': TEXT, 'content-length': String(Buffer.byteLength(body)) };
}

function lowered(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

function headersOf(raw: readonly string[]): Headers {
  const headers = new Headers();
  for (let at = 0; at < raw.length; at += 2) headers.append(raw[at] ?? '', raw[at + 1] ?? '');
  return headers;
}

/** Answers without a body name the encoding that it would have. */
function plain(bytes: Buffer, encoding: string | null): Buffer {
  if (bytes.length === 0) return bytes;
  if (encoding === 'gzip') return gunzipSync(bytes);
  if (encoding === 'deflate') return inflateSync(bytes);
  return bytes;
}
