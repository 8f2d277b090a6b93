/** Options of every client, including the clock and nonce source that tests replace. */
export interface ServerOptions {
  /** Base URL of the authority; may include a path prefix that a proxy strips. */
  readonly url: string;
  /** Timeout of an attempt, including its body, in milliseconds; 30,000 by default. */
  readonly timeoutMs?: number;
  /** Replaces the global `fetch`: for a proxy, custom TLS, or tracing. */
  readonly fetch?: Fetch;
  /** Sent with every request, for example to authenticate to a gateway. */
  readonly headers?: Headers;
  /** How often a request that is safe to resend is retried; 2 by default. */
  readonly retries?: number;
  /**
   * Total milliseconds that a call waits for rate limits (429), independent of `retries`; 0 by default. A function
   * says what is left, so that several calls can share it.
   */
  readonly patienceMs?: number | (() => number);
  /** Called before each wait for a rate limit. */
  readonly onLimited?: (ms: number) => void;
  /** Waits between attempts. It rejects when the signal is aborted. */
  readonly wait?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/** The part of the standard `fetch` that clients use. Without an answer, it rejects with an `Error` whose cause says why. */
export type Fetch = (url: string, init: FetchRequest) => Promise<FetchAnswer>;

export interface FetchRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** Signatures and invite tokens must not follow a redirect to another host. */
  readonly redirect: 'error';
  readonly signal: AbortSignal;
}

/** The part of a standard `Response` that clients use. */
export interface FetchAnswer {
  readonly ok: boolean;
  readonly status: number;
  /** Names are lowercase. */
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  /** The same as a stream. Without it, events cannot be read, and a body that never ends cannot be aborted. */
  readonly body?: AnswerBody | null;
}

export interface AnswerBody {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array }>;
    /** Drops the rest; the reader then sees the end. */
    cancel(): Promise<void>;
  };
}

export type Headers = { readonly [name: string]: string };

/** Options of a single call; the last argument of every method. */
export interface CallOptions {
  /** Aborts the call, including the wait before a retry. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly headers?: Headers;
}

export interface SigningOptions extends ServerOptions {
  /** The authority's public key; fetched once from `/sovereign.json` by default. */
  readonly audience?: string;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** A value never used before: 1..128 characters of `A-Z a-z 0-9 . _ : -`. */
  readonly nonce?: () => string;
}

/** The nonce and timestamp that make a signed request unique and fresh. */
export interface Stamp {
  readonly timestamp: string;
  readonly nonce: string;
}

export function newStamp({
  now = Date.now,
  nonce = randomNonce,
}: Pick<SigningOptions, 'now' | 'nonce'>): Stamp {
  return { timestamp: new Date(now()).toISOString(), nonce: nonce() };
}

/** 128 random bits; `crypto.randomUUID` is unavailable on pages served without TLS. */
export function randomNonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
