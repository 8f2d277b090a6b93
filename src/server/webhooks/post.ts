/** Posts to one webhook, which is not trusted: the time, connections and bytes of each request are bounded. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction } from 'node:net';
import { PrivateAddress } from './lookup.ts';

/** Null if the request was accepted; otherwise the reason, for the log. */
export type Problem = string | null;

export interface Poster {
  /** Never rejects; an aborted request counts as not accepted. */
  post(body: string, headers: http.OutgoingHttpHeaders, abort: AbortSignal): Promise<Problem>;
  /** Closes the connection that is kept open between requests. */
  close(): void;
}

export interface PosterOptions {
  readonly url: URL;
  readonly lookup: LookupFunction;
  /** Milliseconds, 10,000 when absent. */
  readonly limitMs?: number;
}

const LIMIT_MS = 10_000;
/** How long an idle connection is kept; most servers keep theirs longer. */
const IDLE_MS = 1000;
/** The limit for the headers of a response. */
const MOST_HEAD_BYTES = 8 * 1024;
const MOST_BODY_BYTES = 4 * 1024;
const MOST_INTERIM_ANSWERS = 8;

export function createPoster({ url, lookup, limitMs = LIMIT_MS }: PosterOptions): Poster {
  const { Agent, request } = url.protocol === 'https:' ? https : http;
  const agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: IDLE_MS });

  function post(body: string, headers: http.OutgoingHttpHeaders, abort: AbortSignal) {
    return new Promise<Problem>((resolve) => {
      const sent = request(url, {
        method: 'POST',
        agent,
        lookup,
        maxHeaderSize: MOST_HEAD_BYTES,
        headers: { ...headers, 'Content-Length': Buffer.byteLength(body) },
      });
      const timer = setTimeout(end, limitMs, `it took longer than ${limitMs / 1000} s`);
      const stop = () => end('the service is stopping');

      let isOver = false;
      function end(problem: Problem): void {
        if (isOver) return;
        isOver = true;
        clearTimeout(timer);
        abort.removeEventListener('abort', stop);
        resolve(problem);
        if (problem !== null) sent.destroy();
      }

      function judge(answer: http.IncomingMessage): void {
        const { statusCode = 0 } = answer;
        answer.on('error', () => end(CUT_OFF));
        if (statusCode < 200 || statusCode > 299) {
          end(refusal(statusCode));
          return;
        }
        let bytes = 0;
        answer.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes <= MOST_BODY_BYTES) return;
          end(null);
          sent.destroy();
        });
        answer.on('end', () => end(null));
      }

      let interim = 0;
      sent.on('information', () => {
        interim += 1;
        if (interim > MOST_INTERIM_ANSWERS) end('it sends interim responses endlessly');
      });
      sent.on('response', judge);
      sent.on('error', (cause) => end(problemOf(cause)));
      sent.on('close', () => end(CUT_OFF));
      abort.addEventListener('abort', stop);
      if (abort.aborted) stop();
      sent.end(body);
    });
  }

  return { post, close: () => agent.destroy() };
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
  if (cause instanceof PrivateAddress) {
    return 'its name resolves to a private address, which only MESH_WEBHOOK_PRIVATE=1 allows';
  }
  return `the connection failed (${(cause as NodeJS.ErrnoException).code ?? cause.name})`;
}
