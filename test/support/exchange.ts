/**
 * Sends requests like the `fetch` of Node.js, with a fifth of its CPU time. For all the requests of the tests, `fetch`
 * would take longer than the server that answers them.
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
  /** The body, decompressed. */
  readonly bytes: Buffer;
}

/** Headers that `fetch` adds. */
const ADDED = {
  accept: '*/*',
  'accept-language': '*',
  'sec-fetch-mode': 'cors',
  'user-agent': 'node',
  'accept-encoding': 'gzip, deflate',
} as const;
const TEXT = 'text/plain;charset=UTF-8';

/** A connection that has been idle for this long is not reused. */
const KEPT = { keepAlive: true, timeout: 4000 } as const;
const http = new HttpAgent(KEPT);
const https = new HttpsAgent(KEPT);

/** Does not follow redirects; rejects with a `TypeError` if there is no complete answer. */
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
    const unanswered = (cause: Error & { readonly code?: string }) => {
      // The server has closed the connection, probably because it was idle, or after it has carried out the request.
      if (outgoing.reusedSocket && cause.code === 'ECONNRESET') {
        const headers = { ...init.headers, 'X-Mesh-Retry': '1' };
        resolve(exchange(address, { ...init, headers }));
      } else fail(cause);
    };
    outgoing.on('error', unanswered);
    outgoing.on('response', (incoming) => {
      outgoing.off('error', unanswered).on('error', fail);
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

/** An answer without a body names the encoding that the body would have. */
function plain(bytes: Buffer, encoding: string | null): Buffer {
  if (bytes.length === 0) return bytes;
  if (encoding === 'gzip') return gunzipSync(bytes);
  if (encoding === 'deflate') return inflateSync(bytes);
  return bytes;
}

/** Whether the server no longer answers; anything else that fails is a failure of the test. */
export async function gone(act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return false;
  } catch (error) {
    // What fetch throws when there is no answer, or only a part of one.
    if (error instanceof TypeError) return true;
    throw error;
  }
}
