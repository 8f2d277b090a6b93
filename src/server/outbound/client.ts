/**
 * Requests to strangers, which are webhooks and the authorities of other sovereigns: the time, connections and bytes of
 * each are bounded, redirects are not followed, and compressed answers are refused.
 */
import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction } from 'node:net';
import { sizeText } from '../../base/byte-bounds.ts';
import { PrivateAddress } from './lookup.ts';

export interface Exchange {
  readonly url: URL;
  readonly headers: http.OutgoingHttpHeaders;
  /** Posted; without one, the URL is read. */
  readonly body?: string;
  /** The most bytes of an answer that is read; without it, what comes is dropped. */
  readonly mostBytes?: number;
  readonly abort: AbortSignal;
}

export type Outcome =
  /** Why the request was not accepted, for the log. */
  | { readonly problem: string }
  /** With the body as far as it is read; null if it is what the sent `If-None-Match` names. */
  | { readonly problem: null; readonly body: Buffer | null; readonly etag: string | undefined };

export type StrangerClient = ReturnType<typeof createStrangerClient>;

export interface ClientOptions {
  readonly lookup: LookupFunction;
  /** Milliseconds, 10,000 when absent. */
  readonly limitMs?: number;
}

const LIMIT_MS = 10_000;
/** How long an idle connection is kept; most servers keep theirs longer. */
const IDLE_MS = 1000;
/** The limit for the headers of a response. */
const MOST_HEAD_BYTES = 8 * 1024;
/** The limit for a body that is dropped. */
const MOST_DROPPED_BYTES = 4 * 1024;
const MOST_INTERIM_ANSWERS = 8;

export function createStrangerClient({ lookup, limitMs = LIMIT_MS }: ClientOptions) {
  const kept = { keepAlive: true, maxSockets: 1, timeout: IDLE_MS };
  const agents = { 'http:': new http.Agent(kept), 'https:': new https.Agent(kept) };

  function exchange(given: Exchange): Promise<Outcome> {
    const { url, body, headers, abort } = given;
    const isTls = url.protocol === 'https:';
    return new Promise((resolve) => {
      const sent = (isTls ? https : http).request(url, {
        method: body === undefined ? 'GET' : 'POST',
        agent: agents[isTls ? 'https:' : 'http:'],
        lookup,
        maxHeaderSize: MOST_HEAD_BYTES,
        headers: {
          ...headers,
          ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }),
        },
      });
      const timer = setTimeout(fail, limitMs, `it took longer than ${limitMs / 1000} s`);
      const stop = () => fail('the service is stopping');

      let isOver = false;
      function end(outcome: Outcome): void {
        if (isOver) return;
        isOver = true;
        clearTimeout(timer);
        abort.removeEventListener('abort', stop);
        resolve(outcome);
        if (outcome.problem !== null) sent.destroy();
      }
      function fail(problem: string): void {
        end({ problem });
      }

      let interim = 0;
      sent.on('information', () => {
        interim += 1;
        if (interim > MOST_INTERIM_ANSWERS) fail('it sends interim responses endlessly');
      });
      sent.on('response', (answer) => {
        answer.on('error', () => fail(CUT_OFF));
        receive(answer, given, end);
      });
      sent.on('error', (cause) => fail(problemOf(cause)));
      sent.on('close', () => fail(CUT_OFF));
      abort.addEventListener('abort', stop);
      if (abort.aborted) stop();
      sent.end(body);
    });
  }

  return {
    /** Never rejects; an aborted request counts as not accepted. */
    exchange,
    /** Closes the connections that are kept open between requests. */
    close(): void {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

function receive(
  answer: http.IncomingMessage,
  { mostBytes, headers }: Exchange,
  end: (outcome: Outcome) => void,
): void {
  const { statusCode = 0 } = answer;
  const { etag } = answer.headers;
  const isKnown = statusCode === 304 && headers['If-None-Match'] !== undefined;
  if (!isKnown && (statusCode < 200 || statusCode > 299)) {
    end({ problem: refusal(statusCode) });
    return;
  }
  if (mostBytes !== undefined && answer.headers['content-encoding'] !== undefined) {
    end({ problem: 'it compresses its answer, which was not asked for' });
    return;
  }
  let body = Buffer.alloc(0);
  let bytes = 0;
  answer.on('data', (chunk: Buffer) => {
    const at = bytes;
    bytes += chunk.length;
    if (bytes <= (mostBytes ?? MOST_DROPPED_BYTES)) {
      if (mostBytes === undefined) return;
      // One buffer for all, because there may be a chunk for each byte.
      if (at === 0) body = Buffer.allocUnsafeSlow(mostBytes);
      chunk.copy(body, at);
      return;
    }
    const isDropped = mostBytes === undefined;
    end(isDropped ? { problem: null, body: null, etag } : { problem: tooLong(mostBytes) });
    answer.destroy();
  });
  answer.on('end', () =>
    end({ problem: null, body: isKnown ? null : body.subarray(0, bytes), etag }),
  );
}

function tooLong(mostBytes: number): string {
  return `its answer has more than ${sizeText(mostBytes)}`;
}

const CUT_OFF = 'it closed the connection before its answer was complete';

function refusal(status: number): string {
  const redirects = status >= 300 && status <= 399;
  return redirects
    ? `it redirects (${status}), and redirects are not followed`
    : `it answered ${status}`;
}

/** Error messages may contain anything, so only the code is reported. */
function problemOf(cause: Error): string {
  if (cause instanceof PrivateAddress) return cause.message;
  const { code = cause.name } = cause as NodeJS.ErrnoException;
  const cure = UNKNOWN_CA.has(code)
    ? ': its certificate is of a CA that is unknown here; NODE_EXTRA_CA_CERTS can name it'
    : '';
  return `the connection failed (${code})${cure}`;
}

const UNKNOWN_CA: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
