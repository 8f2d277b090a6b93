/**
 * Reads the events of an authority, reconnecting as needed, and checks that they form the audit log, unaltered and without
 * gaps [events-4].
 */
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { LoggedEntry } from '../protocol/answers/documents.ts';
import { AuthorityError } from './authority-error.ts';
import {
  begin,
  type HttpRequest,
  type Prepared,
  piecesOf,
  type Query,
  unanswered,
} from './http.ts';
import type { CallOptions, ServerOptions } from './options.ts';
import { parsed } from './received.ts';
import { portableSha256 } from './sha256.ts';
import { pause, timeLimit } from './waiting.ts';

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
const EVENT_STREAM = 'text/event-stream';

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
      const prepared = { headers: { accept: EVENT_STREAM, ...headers } };
      for await (const text of eventTextsOf(
        server,
        { method: 'GET', path: PATH, query },
        prepared,
        call,
      )) {
        const event = nextEvent(text, last);
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
  return (retryAfter ?? 0) * 1000 + ms;
}

/** Authorities send something every 15 s. */
const SILENCE_MS = 45_000;
const LONGEST_LINE = 1024 * 1024;
/** Lines without an event: its index, which is in the event as well, the end of one, and keepalives [events-3]. */
const WITHOUT_EVENT = /^(?:id: \d+|:?)$/;
const DATA = 'data: ';

/** Yields the events of one answer; a line that has none is an empty text. Throws an `AuthorityError` when the answer is cut off. */
async function* eventTextsOf(
  server: ServerOptions,
  request: Omit<HttpRequest<TSchema>, 'answer' | 'repeatable'>,
  prepared: Prepared,
  { signal, ...call }: CallOptions,
): AsyncGenerator<string, void> {
  const silence = timeLimit(call.timeoutMs ?? SILENCE_MS, signal);
  try {
    const response = await begin(server, request, prepared, { ...call, signal: silence.signal });
    if (!response.body) throw new TypeError('the configured fetch returns no body');
    const decoder = new TextDecoder();
    let rest = '';
    silence.restart();
    for await (const piece of piecesOf(response.body, silence.signal)) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > LONGEST_LINE) throw new TypeError('a line is too long');
      for (const line of lines) {
        if (!WITHOUT_EVENT.test(line)) yield line.startsWith(DATA) ? line.slice(DATA.length) : '';
      }
      silence.restart();
    }
  } catch (error) {
    if (error instanceof AuthorityError) throw error;
    throw unanswered(server, error, signal, silence.signal);
  } finally {
    silence.release();
    // Drops the rest of the answer.
    silence.end();
  }
}

/** A position in the audit log: the index of an entry, and its hash. */
export interface EventPlace {
  readonly index: number;
  /** Lowercase hex; 64 zeros before the first entry. */
  readonly hash: string;
}

/** An audit log entry whose hash was verified. */
export interface LoggedEvent extends EventPlace {
  readonly entry: LoggedEntry;
}

export type EventProblem =
  /** The text is not an event. */
  | 'malformed'
  /** Earlier events are missing, or the event is a repeat. */
  | 'gap'
  /** The event does not continue the previous one. */
  | 'broken_link'
  /** The event does not match its hash. */
  | 'altered_entry';

const REFUSED = /_(?:rejected|failed|denied)$/;

/** Whether the entry is about what an operator changed, and not about what one was refused. */
export function isChange({
  actor_key_id: actor,
  event_type: type,
}: Pick<LoggedEntry, 'actor_key_id' | 'event_type'>): boolean {
  return actor !== undefined && !REFUSED.test(type);
}

/** The authority sent something other than its audit log. */
export class EventChainError extends Error {
  readonly problem: EventProblem;
  /** The index of the expected event. */
  readonly index: number;

  constructor(problem: EventProblem, index: number) {
    super(`Event ${index} from the authority is rejected: ${problem}`);
    this.name = 'EventChainError';
    this.problem = problem;
    this.index = index;
  }
}

export const BEFORE_FIRST: EventPlace = { index: 0, hash: '0'.repeat(64) };

const FORM = /^\{"entry":(\{.*\}),"hash":"([0-9a-f]{64})","index":([0-9]{1,16})\}$/s;

/** Parses the text of an event, which must continue `last`; a null hash in `last` is unknown and not checked. */
export function nextEvent(
  line: string,
  last: { readonly index: number; readonly hash: string | null },
): LoggedEvent {
  const expected = last.index + 1;
  const refuse = (problem: EventProblem) => new EventChainError(problem, expected);
  const [, text = '', hash = '', index] = FORM.exec(line) ?? [];
  if (index === undefined) throw refuse('malformed');
  if (Number(index) !== expected) throw refuse('gap');
  if (portableSha256.hex(text) !== hash) throw refuse('altered_entry');
  const entry = entryIn(text);
  if (entry === null) throw refuse('malformed');
  if (last.hash !== null && entry.prev_hash !== last.hash) throw refuse('broken_link');
  return { index: expected, hash, entry };
}

function entryIn(text: string): LoggedEntry | null {
  const entry = parsed(text);
  return Value.Check(LoggedEntry, entry) ? entry : null;
}
