/** One HTTP exchange with the authority: JSON text out, a typed answer or an `AuthorityError` back. */
import { parseJson } from '../json/parse.ts';
import { isJsonObject, type JsonObject } from '../json/value.ts';
import { AuthorityError } from './authority-error.ts';
import type { ServerOptions } from './options.ts';

const DEFAULT_TIMEOUT_MS = 30_000;

export type Query = { readonly [name: string]: readonly string[] };

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Percent-encoded path, without query. */
  readonly path: string;
  readonly query?: Query;
  readonly headers?: { readonly [name: string]: string };
  /** JSON text, sent byte for byte. */
  readonly body?: string;
}

/** Sends the request; `T` is what the authority documents as the route's answer. */
export async function send<T>(server: ServerOptions, request: HttpRequest): Promise<T> {
  const { response, text } = await exchange(server, request);
  const answer = readObject(text);
  if (response.ok && answer !== null) return answer as T;
  throw refusal(response, answer);
}

async function exchange(server: ServerOptions, request: HttpRequest) {
  const { method, body } = request;
  try {
    const response = await fetch(addressOf(server, request), {
      method,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...request.headers,
      },
      // Signatures and invite tokens must not follow a redirect to another host.
      redirect: 'error',
      signal: AbortSignal.timeout(server.timeoutMs ?? DEFAULT_TIMEOUT_MS),
      ...(body !== undefined && { body }),
    });
    return { response, text: await response.text() };
  } catch (error) {
    const message = `No answer from the authority at ${server.url} (${causeOf(error)})`;
    throw new AuthorityError(message, { status: 0, code: 'unreachable' });
  }
}

function addressOf(server: ServerOptions, { path, query = {} }: HttpRequest): string {
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

function readObject(text: string): JsonObject | null {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

function refusal(response: Response, answer: JsonObject | null): AuthorityError {
  const { status, headers } = response;
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const common = {
    status,
    requestId: headers.get('x-request-id'),
    retryAfter: Number.isFinite(seconds) ? seconds : null,
  };
  const envelope = answer?.error;
  if (!isJsonObject(envelope) || typeof envelope.code !== 'string') {
    const message = `The answer is not one of a network authority (HTTP ${status})`;
    return new AuthorityError(message, { ...common, code: 'unreadable_answer' });
  }
  return new AuthorityError(String(envelope.message), {
    ...common,
    code: envelope.code,
    details: isJsonObject(envelope.details) ? envelope.details : {},
  });
}
