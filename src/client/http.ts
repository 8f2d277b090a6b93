/** One exchange with the authority: sends JSON text and returns an answer of the given schema or an `AuthorityError`. */
import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { MOST_BYTES, sizeText } from '../base/byte-bounds.ts';
import { isJsonObject, type JsonObject } from '../base/json/value.ts';
import type { Operation } from '../protocol/api/define.ts';
import { API } from '../protocol/api/table.ts';
import { AddressError, AuthorityError } from './authority-error.ts';
import type { AnswerBody, CallOptions, FetchAnswer, Headers, ServerOptions } from './options.ts';
import { parsed } from './received.ts';
import { type Repeatable, withRetries } from './retry.ts';
import { timeLimit } from './waiting.ts';

const DEFAULT_TIMEOUT_MS = 30_000;

export type Query = { readonly [name: string]: readonly string[] };

/** What one attempt sends. Each attempt is signed again, unless the same bytes have to be resent. */
export interface Prepared {
  readonly headers?: Headers;
  /** JSON text, sent byte for byte. */
  readonly body?: string;
}

export interface HttpRequest<Answer extends TSchema> extends Repeatable {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Percent-encoded path, without query. */
  readonly path: string;
  readonly query?: Query;
  readonly answer: Answer;
  prepare?(): Prepared | Promise<Prepared>;
}

export async function send<Answer extends TSchema>(
  server: ServerOptions,
  request: HttpRequest<Answer>,
  call: CallOptions = {},
): Promise<Static<Answer>> {
  assertReachable(request.path);
  let prepared: Prepared = {};
  return withRetries(server, request, call, async (isResent) => {
    prepared = isResent ? resent(prepared) : ((await request.prepare?.()) ?? {});
    return attempt(server, request, prepared, call);
  });
}

function resent({ headers, ...prepared }: Prepared): Prepared {
  return { ...prepared, headers: { ...headers, 'x-mesh-retry': '1' } };
}

async function attempt<Answer extends TSchema>(
  server: ServerOptions,
  request: HttpRequest<Answer>,
  prepared: Prepared,
  call: CallOptions,
): Promise<Static<Answer>> {
  const { response, text, mostBytes } = await exchange(server, request, prepared, call);
  const answer = readObject(text, mostBytes);
  if (!response.ok) throw refusal(response, answer);
  if (Value.Check(request.answer, answer)) return answer;
  throw unreadable(response);
}

async function exchange<Answer extends TSchema>(
  server: ServerOptions,
  request: HttpRequest<Answer>,
  prepared: Prepared,
  call: CallOptions,
) {
  const limit = timeLimit(call.timeoutMs ?? server.timeoutMs ?? DEFAULT_TIMEOUT_MS, call.signal);
  const { signal } = limit;
  try {
    const response = await ask(server, request, prepared, { ...call, signal });
    const mostBytes = response.ok ? mostBytesOf(request) : MOST_BYTES.record;
    return { response, text: await textIn(response, signal, mostBytes), mostBytes };
  } catch (error) {
    if (error instanceof AuthorityError) throw error;
    throw unanswered(server, error, call.signal, signal);
  } finally {
    limit.release();
  }
}

/** The paths of answers that grow with the network. */
const LONG: ReadonlySet<string> = new Set(
  Object.values<Operation>(API)
    .filter(({ kind, growsWithNetwork }) => kind === 'list' || growsWithNetwork === true)
    .map(({ path }) => path),
);

function mostBytesOf({ path, query = {} }: Pick<HttpRequest<TSchema>, 'path' | 'query'>): number {
  return LONG.has(path) && query.limit === undefined ? MOST_BYTES.list : MOST_BYTES.record;
}

async function textIn(
  response: FetchAnswer,
  signal: AbortSignal,
  mostBytes: number,
): Promise<string> {
  try {
    return await textOf(response, signal, mostBytes);
  } catch (error) {
    if (!(error instanceof LongAnswer)) throw error;
    const message = `The answer has more than ${sizeText(mostBytes)}, and no network authority sends as much`;
    throw new AuthorityError(message, { ...factsOf(response), code: 'unreadable_answer' });
  }
}

/** `fetch` resolves these parts of a path, even percent-encoded, and would ask for another route. */
const ELSEWHERE = /^(?:\.|%2e){1,2}$/i;

function assertReachable(path: string): void {
  for (const part of path.split('/').slice(1)) {
    if (part !== '' && !ELSEWHERE.test(part)) continue;
    const what = part === '' ? 'An empty text' : decodeURIComponent(part);
    throw new AddressError(`${what} cannot be an id in ${path}; nothing was sent`);
  }
}

/** Returns the head of an answer before its body arrives; throws the authority's error. */
export async function begin(
  server: ServerOptions,
  request: Omit<HttpRequest<TSchema>, 'answer' | 'repeatable'>,
  prepared: Prepared,
  call: CallOptions & { readonly signal: AbortSignal },
): Promise<FetchAnswer> {
  const response = await ask(server, request, prepared, call);
  if (!response.ok) {
    const text = await textIn(response, call.signal, MOST_BYTES.record);
    throw refusal(response, readObject(text, MOST_BYTES.record));
  }
  return response;
}

function ask(
  server: ServerOptions,
  request: Pick<HttpRequest<TSchema>, 'method' | 'path' | 'query'>,
  { body, headers }: Prepared,
  call: CallOptions & { readonly signal: AbortSignal },
): Promise<FetchAnswer> {
  const { fetch = globalThis.fetch } = server;
  return fetch(addressOf(server, request), {
    method: request.method,
    headers: {
      ...server.headers,
      ...call.headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    redirect: 'error',
    signal: call.signal,
    ...(body !== undefined && { body }),
  });
}

/** `given` is the caller's signal, and `limit` is also aborted when the time is up. */
export function unanswered(
  { url }: ServerOptions,
  error: unknown,
  given: AbortSignal | undefined,
  limit: AbortSignal,
): AuthorityError {
  const isLate = given?.aborted !== true && limit.aborted;
  const cause = isLate ? 'it timed out' : causeOf(error);
  const message = `No answer from the authority at ${url} (${cause})`;
  return new AuthorityError(message, { status: 0, code: codeOf(given, limit), cause: error });
}

function codeOf(given: AbortSignal | undefined, limit: AbortSignal) {
  if (given?.aborted === true) return 'aborted';
  return limit.aborted ? 'timeout' : 'unreachable';
}

function addressOf(
  server: ServerOptions,
  { path, query = {} }: { readonly path: string; readonly query?: Query },
): string {
  const pairs = Object.entries(query).flatMap(([name, values]) =>
    values.map((value) => [name, value] as [string, string]),
  );
  const search = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`;
  return `${server.url.replace(/\/+$/, '')}${path}${search}`;
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown cause';
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return 'code' in cause ? String(cause.code) : cause.message;
}

/** A value takes far more memory than its text: no answer has as many values as this allows for its bound. */
const BYTES_OF_VALUE = 16;

function readObject(text: string, mostBytes: number): JsonObject | null {
  const value = parsed(text, mostBytes / BYTES_OF_VALUE);
  return isJsonObject(value) ? value : null;
}

function refusal(response: FetchAnswer, answer: JsonObject | null): AuthorityError {
  const envelope = answer?.error;
  if (!isJsonObject(envelope) || typeof envelope.code !== 'string') return unreadable(response);
  return new AuthorityError(String(envelope.message), {
    ...factsOf(response),
    code: envelope.code,
    details: isJsonObject(envelope.details) ? envelope.details : {},
  });
}

function unreadable(response: FetchAnswer): AuthorityError {
  const message = `The answer did not come from a network authority (HTTP ${response.status})`;
  return new AuthorityError(message, { ...factsOf(response), code: 'unreadable_answer' });
}

function factsOf({ status, headers }: FetchAnswer) {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const answeredAt = Date.parse(headers.get('date') ?? '');
  return {
    status,
    answeredAt: Number.isNaN(answeredAt) ? null : answeredAt,
    requestId: headers.get('x-request-id'),
    retryAfter: Number.isFinite(seconds) && seconds >= 0 ? seconds : null,
  };
}

/**
 * Reads the bodies of answers. Reading stops when the signal is aborted, even if `fetch` ignores it: with `redirect:
 * 'error'`, as used here, `fetch` of Node.js 20.20 loses the signal when garbage is collected while the body is read
 * (nodejs/undici#4627).
 */

/** An answer with more bytes than were wanted. */
class LongAnswer extends Error {
  constructor(mostBytes: number) {
    super(`the answer has more than ${mostBytes} bytes`);
  }
}

/** Rejects with the signal's reason when it is aborted before the end. The unread rest is dropped. */
export async function* piecesOf(body: AnswerBody, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const drop = () => void reader.cancel().catch(() => undefined);
  if (signal.aborted) drop();
  signal.addEventListener('abort', drop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done || value === undefined) return;
      yield value;
    }
  } finally {
    signal.removeEventListener('abort', drop);
    drop();
  }
}

/** Returns the body as text; rejects with a `LongAnswer` when it says that it has more than `mostBytes` bytes, or has. */
export async function textOf(
  answer: FetchAnswer,
  signal: AbortSignal,
  mostBytes: number,
): Promise<string> {
  const { body, headers } = answer;
  if (Number(headers.get('content-length')) > mostBytes) {
    await body
      ?.getReader()
      .cancel()
      .catch(() => undefined);
    throw new LongAnswer(mostBytes);
  }
  if (!body) return answer.text();
  const decoder = new TextDecoder();
  const texts: string[] = [];
  let bytes = 0;
  for await (const piece of piecesOf(body, signal)) {
    bytes += piece.byteLength;
    if (bytes > mostBytes) throw new LongAnswer(mostBytes);
    texts.push(decoder.decode(piece, { stream: true }));
  }
  return texts.join('') + decoder.decode();
}
