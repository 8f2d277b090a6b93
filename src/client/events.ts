/** Reads the events of an authority, reconnecting as needed [events-4]. */
import { AuthorityError } from './authority-error.ts';
import { BEFORE_FIRST, type EventPlace, type LoggedEvent, nextEvent } from './event-chain.ts';
import type { Prepared, Query } from './http.ts';
import { linesOf } from './lines.ts';
import type { CallOptions, ServerOptions } from './options.ts';
import { pause } from './retry.ts';

export interface EventOptions extends CallOptions {
  /**
   * The event after which to begin: its index, or its position, which the next event is checked against. By default,
   * begins with the first event.
   */
  readonly after?: number | EventPlace;
  /** Whether to wait for new events at the end of the log; true by default. */
  readonly follow?: boolean;
  /** Called when the connection is lost, with the delay in milliseconds before the next attempt. */
  readonly onLost?: (error: AuthorityError, ms: number) => void;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
const DEFAULT_RETRIES = 2;

const PATH = '/events';
const LINES_OF_JSON = 'application/x-ndjson';

/**
 * Yields each event once and in order. A lost connection is reopened after the last event; with `follow`, there is no
 * limit to reconnecting. Ends at the end of the log without `follow`, or when the signal is aborted. Throws an
 * `AuthorityError` when the authority refuses, and an `EventChainError` when it sends anything but its log.
 */
export async function* readEvents(
  server: ServerOptions,
  sign: (query: Query) => Promise<Prepared>,
  { after = BEFORE_FIRST, follow = true, onLost, ...call }: EventOptions,
): AsyncGenerator<LoggedEvent, void> {
  const { signal } = call;
  let last: { readonly index: number; readonly hash: string | null } = placeOf(after);
  for (let failures = 0; ; ) {
    let problem: AuthorityError;
    try {
      const query = { after: [String(last.index)], follow: [follow ? '1' : '0'] };
      const { headers } = await sign(query);
      const prepared = { headers: { accept: LINES_OF_JSON, ...headers } };
      for await (const line of linesOf(
        server,
        { method: 'GET', path: PATH, query },
        prepared,
        call,
      )) {
        const event = nextEvent(line, last);
        last = event;
        failures = 0;
        yield event;
      }
      if (!follow) return;
      problem = new AuthorityError('The authority ended the stream', {
        status: 0,
        code: 'unreachable',
      });
    } catch (error) {
      if (signal?.aborted === true) return;
      if (!(error instanceof AuthorityError) || !error.retryable) throw error;
      if (!follow && failures >= (server.retries ?? DEFAULT_RETRIES)) throw error;
      problem = error;
    }
    const ms = waitFor(problem, failures);
    failures += 1;
    onLost?.(problem, ms);
    const { wait = pause } = server;
    try {
      await wait(ms, signal);
    } catch {
      return;
    }
  }
}

function placeOf(after: number | EventPlace) {
  if (typeof after !== 'number') return after;
  return after === 0 ? BEFORE_FIRST : { index: after, hash: null };
}

/** Spread out, so that readers whose connections ended together do not reconnect together. */
function waitFor({ retryAfter }: AuthorityError, failures: number): number {
  const spread = 0.5 + Math.random() / 2;
  const ms = Math.min(FIRST_WAIT_MS * 2 ** failures, LONGEST_WAIT_MS) * spread;
  return Math.max(retryAfter ?? 0, 0) * 1000 + ms;
}
