/**
 * Passes one request on to the active instance, and its answer back, byte for byte [link-3]. A short answer is collected
 * and written at once, so that a slow client holds no connection between instances; a longer one is read at the pace of
 * its client.
 */
import type { HttpResponse } from 'uWebSockets.js';
import { type Dispatcher, errors } from 'undici';
import type { Collector } from '../forward/copies.ts';
import type { Attempt, Forwarded } from '../forward/forwarding.ts';
import { BASE_URL, FORWARDED_FOR, NOT_BEGUN, RETRY } from '../forward/target.ts';
import type { Upstream } from '../forward/upstream.ts';
import { type Closing, closingLine } from './response.ts';

/** A request as it was received. */
export interface PassedRequest {
  readonly method: string;
  /** The path and the query, as sent. */
  readonly target: string;
  /** Names in lower case and values, one after the other. */
  readonly headers: readonly string[];
  /** Null if it has none. */
  readonly body: Uint8Array | null;
  /** Whether the answer may not end. */
  readonly isLasting: boolean;
  readonly isRepeatable: boolean;
  /** Called with the head of the answer; collects its body unless it returns null. */
  noted(status: number, header: (name: string) => string): Collector | null;
}

/** The client of a request. */
export interface PassedClient {
  readonly res: HttpResponse;
  aborted: boolean;
  onGone: (() => void) | null;
}

/** The head of an answer, and its body if that is complete. */
export interface PassedAnswer {
  readonly status: number;
  /** The value of a header by its lower-case name; empty if it is absent. */
  header(name: string): string;
  /** Null if the body follows while it is written. */
  readonly body: Uint8Array | null;
  /** Writes it to the client; resolves when nothing more can be written. */
  write(closing: Closing): Promise<void> | null;
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
const NOT_PASSED_BACK: ReadonlySet<string> = new Set([...OF_CONNECTION, 'date', NOT_BEGUN]);

/** A longer answer is written while it arrives. */
const MOST_COLLECTED_BYTES = 64 * 1024;
/** How many clients of this thread may read a longer answer slowly at the same time. */
const MOST_WAITING = 128;

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
    isRepeatable: isRead || request.isRepeatable,
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
  const { method, target, headers, body, isLasting } = request;
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
      isLasting,
      answer,
    );
  });
}

function withoutRetry(headers: readonly string[]): string[] {
  return headers.filter((_text, at) => headers[at - (at % 2)] !== RETRY);
}

/** The clients that wait for room, in the order in which they began to. */
const waiting = new Set<Answer>();

/** One answer while it arrives. */
class Answer implements Dispatcher.DispatchHandlers, PassedAnswer {
  status = 0;
  body: Uint8Array | null = null;
  readonly #request: PassedRequest;
  readonly #client: PassedClient;
  readonly #settle: (outcome: Outcome) => void;
  #abort: ((cause?: Error) => void) | null = null;
  #resume: () => void = () => undefined;
  #statusText = '';
  #headers: readonly Buffer[] = [];
  /** The number of bytes of the body; null if not known. */
  #length: number | null = null;
  #collected: Buffer[] = [];
  #collectedBytes = 0;
  #collector: Collector | null = null;
  #isBegun = true;
  /** Whether the client gets the body while it arrives. */
  #isWriting = false;
  #isComplete = false;
  /** Resolves the promise of `write`. */
  #written: () => void = () => undefined;

  constructor(request: PassedRequest, client: PassedClient, settle: (outcome: Outcome) => void) {
    this.#request = request;
    this.#client = client;
    this.#settle = settle;
  }

  /** The next thing to happen is that its first byte is sent. */
  onConnect(abort: (cause?: Error) => void): void {
    this.#abort = abort;
    if (this.#client.aborted) abort();
  }

  onHeaders(status: number, headers: Buffer[], resume: () => void, statusText: string): boolean {
    // Only after an interim answer, which is not passed on, do others follow.
    if (status < 200) return true;
    this.status = status;
    this.#headers = headers;
    this.#resume = resume;
    this.#statusText = statusText;
    const length = this.header('content-length');
    this.#length = length === '' ? null : Number(length);
    this.#isBegun = this.header(NOT_BEGUN) === '';
    if (this.#isBegun) this.#collector = this.#request.noted(status, (name) => this.header(name));
    if (this.#isBegun && (this.#length === null || this.#length > MOST_COLLECTED_BYTES)) {
      if (this.#hasBody()) this.#settle({ kind: 'answered', answer: this });
    }
    return true;
  }

  onData(chunk: Buffer): boolean {
    this.#collector?.add(chunk);
    if (!this.#isBegun || this.#client.aborted) return true;
    if (this.#isWriting) return this.#writeChunk(chunk);
    this.#collected.push(chunk);
    this.#collectedBytes += chunk.length;
    return this.#collectedBytes <= MOST_COLLECTED_BYTES;
  }

  onComplete(): void {
    this.#isComplete = true;
    if (!this.#isBegun) {
      this.#settle({ kind: 'not begun' });
      return;
    }
    this.#collector?.complete();
    if (this.#isWriting) {
      this.#end();
      return;
    }
    this.body = Buffer.concat(this.#collected);
    this.#settle({ kind: 'answered', answer: this });
  }

  onError(cause: Error): void {
    if (cause instanceof errors.InvalidArgumentError) {
      this.#settle({ kind: 'invalid' });
      return;
    }
    this.#settle({ kind: this.#abort === null || !this.#isBegun ? 'not begun' : 'lost' });
    // What has been written is the beginning of an answer.
    if (this.status !== 0 && !this.#isComplete) this.#cut();
  }

  header(name: string): string {
    for (let at = 0; at < this.#headers.length; at += 2) {
      if (this.#headers[at]?.toString('latin1').toLowerCase() === name) {
        return this.#headers[at + 1]?.toString('latin1') ?? '';
      }
    }
    return '';
  }

  write(closing: Closing): Promise<void> | null {
    const { res, aborted } = this.#client;
    if (aborted) {
      this.#stop();
      return null;
    }
    const { body } = this;
    if (!this.#hasBody()) {
      res.cork(() => {
        this.#writeHead(`${closingLine(closing)}${this.#lengthLine()}`);
        res.endWithoutBody();
      });
      return null;
    }
    if (body !== null) {
      res.cork(() => {
        this.#writeHead();
        res.end(body, closing !== 'stays');
      });
      return null;
    }
    return this.#writeWhileItArrives(closing);
  }

  #writeWhileItArrives(closing: Closing): Promise<void> {
    const client = this.#client;
    client.res.cork(() => this.#writeHead(closingLine(closing)));
    this.#isWriting = true;
    client.onGone = () => this.#stop();
    const collected = this.#collected;
    this.#collected = [];
    return new Promise((resolve) => {
      this.#written = resolve;
      let isTaken = true;
      for (const chunk of collected) isTaken = this.#writeChunk(chunk) && isTaken;
      if (this.#isComplete) this.#end();
      else if (isTaken) this.#resume();
    });
  }

  #hasBody(): boolean {
    return this.#request.method !== 'HEAD' && this.status !== 304 && this.status !== 204;
  }

  #lengthLine(): string {
    return this.#length === null ? '' : `\r\nContent-Length: ${this.#length}`;
  }

  /** As in `writeHead` of `response.ts`, all lines after the first are part of the value of the first. */
  #writeHead(furtherLines = ''): void {
    const { res } = this.#client;
    if (this.status !== 200) res.writeStatus(`${this.status} ${this.#statusText}`);
    const lines: string[] = [];
    for (let at = 0; at < this.#headers.length; at += 2) {
      const name = this.#headers[at]?.toString('latin1') ?? '';
      if (NOT_PASSED_BACK.has(name.toLowerCase())) continue;
      lines.push(`${name}: ${this.#headers[at + 1]?.toString('latin1')}`);
    }
    const [name = 'X', value = ''] = [/^[^:]+/.exec(lines[0] ?? '')?.[0], lines[0]];
    const all = [value.slice(name.length + 2), ...lines.slice(1)].join('\r\n');
    res.writeHeader(name, Buffer.from(`${all}${furtherLines}`, 'latin1'));
  }

  /** False if the client must accept more first. */
  #writeChunk(chunk: Buffer): boolean {
    if (this.#client.aborted || chunk.length === 0) return true;
    return this.#length === null ? this.#writePiece(chunk) : this.#writePart(chunk, this.#length);
  }

  #writePiece(chunk: Buffer): boolean {
    const { res } = this.#client;
    let isTaken = true;
    res.cork(() => {
      isTaken = res.write(chunk);
    });
    if (!isTaken) {
      this.#wait();
      res.onWritable(() => {
        this.#continue();
        return true;
      });
    }
    return isTaken;
  }

  /** Part of a body of known length; what the client does not accept now is written again from where it stopped. */
  #writePart(chunk: Buffer, length: number): boolean {
    const { res } = this.#client;
    const began = res.getWriteOffset();
    let isTaken = true;
    res.cork(() => {
      [isTaken] = res.tryEnd(chunk, length);
    });
    if (isTaken) return true;
    this.#wait();
    const copy = Buffer.from(chunk);
    res.onWritable((offset) => {
      let isDone = false;
      res.cork(() => {
        [isDone] = res.tryEnd(copy.subarray(offset - began), length);
      });
      if (isDone) this.#continue();
      return isDone;
    });
    return false;
  }

  #wait(): void {
    waiting.add(this);
    const [slowest] = waiting;
    if (slowest !== undefined && waiting.size > MOST_WAITING) slowest.#cut();
  }

  #continue(): void {
    waiting.delete(this);
    if (this.#isComplete) this.#end();
    else this.#resume();
  }

  #end(): void {
    if (waiting.has(this)) return;
    const { res, aborted } = this.#client;
    if (!aborted && this.#length === null) res.cork(() => res.end());
    this.#finish();
  }

  /** The client has not got the whole answer. */
  #cut(): void {
    if (this.#isWriting && !this.#client.aborted) this.#client.res.close();
    this.#stop();
  }

  #stop(): void {
    if (!this.#isComplete) this.#abort?.();
    this.#finish();
  }

  #finish(): void {
    waiting.delete(this);
    this.#written();
  }
}
