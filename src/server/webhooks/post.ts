/** Posts to one webhook, which may answer what it likes: time, connections and bytes of each request are bounded. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { LookupFunction } from 'node:net';
import { PrivateAddress } from './lookup.ts';

/** Null when the request was taken; else why it was not, for the log. */
export type Problem = string | null;

export interface Poster {
  /** Never rejects; a request that is aborted was not taken. */
  post(body: string, headers: http.OutgoingHttpHeaders, abort: AbortSignal): Promise<Problem>;
  /** Ends the connection that is kept between requests. */
  close(): void;
}

export interface PosterOptions {
  readonly url: URL;
  readonly lookup: LookupFunction;
  /** Milliseconds, 10,000 when absent. */
  readonly limitMs?: number;
}

const LIMIT_MS = 10_000;
/** A connection is kept for what follows at once; most servers keep it for longer. */
const IDLE_MS = 1000;
/** Of an answer. */
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
      const stop = () => end('the service stops');

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
        if (interim > MOST_INTERIM_ANSWERS) end('it answers without an end');
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
  return redirects ? `it redirects (${status}), which is not followed` : `it answered ${status}`;
}

/** Messages of others may hold anything, so only the code is reported. */
function problemOf(cause: Error): string {
  if (cause instanceof PrivateAddress) {
    return 'its name leads to a private address, which MESH_WEBHOOK_PRIVATE=1 would allow';
  }
  return `the connection failed (${(cause as NodeJS.ErrnoException).code ?? cause.name})`;
}
