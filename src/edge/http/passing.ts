/**
 * Passes one request on to the active instance, and its answer back, byte for byte [link-3]. A short answer is collected
 * first, so that a slow client holds no connection between instances; a longer one is read at the pace of its client.
 */
import type { Dispatcher } from 'undici';
import type { Collector } from '../forward/copies.ts';
import type { Attempt, Forwarded } from '../forward/forwarder.ts';
import { BASE_URL, FORWARDED_FOR, NOT_BEGUN, RETRY } from '../forward/target.ts';
import { type Lane, loadUndici, type Upstream } from '../forward/upstream.ts';
import { type PiecewiseBody, passedReply, type Reply } from '../reply.ts';

/** A request as it was received. */
export interface PassedRequest {
  readonly method: string;
  /** The path and the query, as sent. */
  readonly target: string;
  /** Names in lower case and values, one after the other. */
  readonly headers: readonly string[];
  /** Null if it has none. */
  readonly body: Uint8Array | null;
  readonly lane: Lane;
  /** Whether an operator has signed it, with a nonce that counts once. */
  readonly isSigned: boolean;
  /** Whether a repeat of the same bytes gets the first answer. */
  readonly keepsAnswer: boolean;
  /** Called with the head of the answer; collects its body unless it returns null. */
  noted(status: number, header: (name: string) => string): Collector | null;
}

/** The client of a request. */
export interface PassedClient {
  readonly res: { close(): unknown };
  readonly aborted: boolean;
}

/** What the active instance has answered. */
export interface PassedAnswer {
  readonly requestId: string;
  readonly reply: Reply;
}

/** Headers that belong to one connection (RFC 9110, 7.6.1), or that the sender writes itself. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
]);
const NOT_PASSED_ON: ReadonlySet<string> = new Set([
  ...OF_CONNECTION,
  'expect',
  FORWARDED_FOR,
  BASE_URL,
]);
const NOT_PASSED_BACK: ReadonlySet<string> = new Set([
  ...OF_CONNECTION,
  'content-type',
  'date',
  NOT_BEGUN,
]);

/**
 * uWebSockets.js takes 98 header lines, and reads on forever after more. undici may add three: the connection, the length,
 * and the sign of a repetition.
 */
const MOST_LINES = 95;

/** A longer answer is written while it arrives. */
const MOST_COLLECTED_BYTES = 64 * 1024;
/**
 * How many clients of this thread may read a longer answer slowly at the same time: each holds a connection that others
 * wait for. Streams have connections of their own, so only their memory counts.
 */
const MOST_SLOW = { ending: 128, lasting: 1024 } as const;

/** The headers to send, from all header lines of a request. */
export function passedHeaders(
  lines: readonly string[],
  { remoteAddr, baseUrl }: { readonly remoteAddr: string; readonly baseUrl: string },
): string[] {
  const passed = [FORWARDED_FOR, remoteAddr, BASE_URL, baseUrl];
  for (let at = 0; at < lines.length; at += 2) {
    const [name, value] = [lines[at] as string, asSent(lines[at + 1] as string)];
    if (!NOT_PASSED_ON.has(name) && VALUE.test(value)) passed.push(name, value);
  }
  return passed;
}

/** One with control characters is left out: no HTTP client sends it. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** uWebSockets.js reads the bytes of a head as UTF-8, and undici writes one byte a character. */
function asSent(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** The request for `createForwarding`. */
export function passing(
  request: PassedRequest,
  client: PassedClient,
): Forwarded<Upstream, PassedAnswer> {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  return {
    isRead,
    isRepeatable: isRead ? !request.isSigned : request.keepsAnswer,
    bytes: request.body?.byteLength ?? 0,
    isGone: () => client.aborted,
    send: (upstream, isRepeat) => sendOnce(upstream, request, client, isRepeat && !isRead),
  };
}

type Outcome = Attempt<PassedAnswer>;

function sendOnce(
  upstream: Upstream,
  request: PassedRequest,
  client: PassedClient,
  isRepeat: boolean,
): Promise<Outcome> {
  if (!upstream.isUp()) return Promise.resolve({ kind: 'not begun' });
  const { method, target, headers, body, lane } = request;
  if (headers.length > 2 * MOST_LINES) return Promise.resolve({ kind: 'invalid' });
  return new Promise((resolve) => {
    const answer = new Answer(request, client, resolve);
    const marked = isRepeat ? [...withoutRetry(headers), RETRY, '1'] : headers;
    upstream.dispatch(
      {
        path: asSent(target),
        method: method as Dispatcher.HttpMethod,
        headers: marked as string[],
        body,
      },
      lane,
      answer,
    );
  });
}

function withoutRetry(headers: readonly string[]): string[] {
  return headers.filter((_text, at) => headers[at - (at % 2)] !== RETRY);
}

/** Answers of which the client has not accepted the last piece, in the order in which they began to wait. */
const slow = { ending: new Set<Answer>(), lasting: new Set<Answer>() };

/** One answer while it arrives. */
class Answer implements Dispatcher.DispatchHandlers, PiecewiseBody {
  length: number | null = null;
  readonly #request: PassedRequest;
  readonly #client: PassedClient;
  readonly #settle: (outcome: Outcome) => void;
  #abort: (() => void) | null = null;
  #resume: () => void = () => undefined;
  #status = 0;
  #headers: readonly Buffer[] = [];
  #chunks: Buffer[] = [];
  #bytes = 0;
  #collector: Collector | null = null;
  #isBegun = true;
  #state: 'arriving' | 'complete' | 'lost' = 'arriving';
  /** Called when there is something to give. */
  #arrived: () => void = () => undefined;
  readonly #kind: keyof typeof slow;

  constructor(request: PassedRequest, client: PassedClient, settle: (outcome: Outcome) => void) {
    this.#request = request;
    this.#kind = request.lane === 'lasting' ? 'lasting' : 'ending';
    this.#client = client;
    this.#settle = settle;
  }

  /** The next thing to happen is that its first byte is sent. */
  onConnect(abort: () => void): void {
    this.#abort = abort;
    if (this.#client.aborted) abort();
  }

  onHeaders(status: number, headers: Buffer[], resume: () => void): boolean {
    // Only after an interim answer, which is not passed on, do others follow.
    if (status < 200) return true;
    this.#status = status;
    this.#headers = headers;
    this.#resume = resume;
    this.#isBegun = this.#header(NOT_BEGUN) === '';
    if (!this.#isBegun) return true;
    // Not an answer of an edge: its HTTP library has not taken the head.
    if (this.#header('x-request-id') === '') this.#settle({ kind: 'invalid' });
    this.#collector = this.#request.noted(status, (name) => this.#header(name));
    const length = this.#header('content-length');
    this.length = length === '' ? null : Number(length);
    const isLong = this.length === null || this.length > MOST_COLLECTED_BYTES;
    if (isLong && this.#hasBody()) this.#answer(this);
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#collector?.add(chunk);
    if (!this.#isBegun || this.#client.aborted) return true;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#arrived();
    return this.#bytes <= MOST_COLLECTED_BYTES;
  }

  onComplete(): void {
    this.#state = 'complete';
    this.#arrived();
    if (this.#isBegun) this.#answer(Buffer.concat(this.#chunks));
    else this.#settle({ kind: 'not begun' });
    this.#collector?.complete();
  }

  onError(cause: Error): void {
    this.#state = 'lost';
    this.#arrived();
    const isInvalid = cause instanceof loadUndici().errors.InvalidArgumentError;
    const isNotBegun = this.#abort === null || !this.#isBegun;
    this.#settle({ kind: isInvalid ? 'invalid' : isNotBegun ? 'not begun' : 'lost' });
  }

  async next(): Promise<Uint8Array | null> {
    slow[this.#kind].delete(this);
    while (this.#chunks.length === 0) {
      if (this.#state === 'complete') return null;
      if (this.#state === 'lost') throw new Error('The answer broke off');
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
    const piece = Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#bytes = 0;
    this.#resume();
    return piece;
  }

  waits(): void {
    const waiting = slow[this.#kind];
    waiting.add(this);
    const [slowest] = waiting;
    if (slowest !== undefined && waiting.size > MOST_SLOW[this.#kind]) slowest.#cut();
  }

  gone(): void {
    slow[this.#kind].delete(this);
    if (this.#state === 'arriving') this.#abort?.();
  }

  abandon(): void {
    this.gone();
  }

  #cut(): void {
    if (!this.#client.aborted) this.#client.res.close();
    this.gone();
  }

  #header(name: string): string {
    const lines = this.#headers;
    const at = lines.findIndex((text, i) => i % 2 === 0 && `${text}`.toLowerCase() === name);
    return at < 0 ? '' : `${lines[at + 1]}`;
  }

  #hasBody(): boolean {
    return this.#request.method !== 'HEAD' && this.#status !== 304;
  }

  /** Does nothing if it was called before. */
  #answer(body: Reply['body']): void {
    const isHidden = (name: string) =>
      NOT_PASSED_BACK.has(name) && (name !== 'content-length' || this.#hasBody());
    const lines = this.#headers.flatMap((name, at) => {
      if (at % 2 === 1 || isHidden(`${name}`.toLowerCase())) return [];
      return [`${name}: ${this.#headers[at + 1]}`];
    });
    const reply = passedReply(this.#status, this.#header('content-type'), lines, body);
    this.#settle({
      kind: 'answered',
      answer: { requestId: this.#header('x-request-id'), reply },
    });
  }
}
