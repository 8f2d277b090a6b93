/** What every client takes, and the clock and nonce source that tests replace. */
export interface ServerOptions {
  /** Base URL of the authority; a path prefix a proxy strips may follow the host. */
  readonly url: string;
  /** Milliseconds until an attempt without a whole answer counts as unanswered; 30,000 when absent. */
  readonly timeoutMs?: number;
  /** Used in place of the global `fetch`: for a proxy, TLS of your own, or tracing. */
  readonly fetch?: Fetch;
  /** Sent with every request, such as those that a gateway asks for. */
  readonly headers?: Headers;
  /** How often what is safe to send again is repeated; 2 when absent. */
  readonly retries?: number;
  /** How many milliseconds a call waits in all, apart from `retries`, while the authority limits it (429); 0 when absent. */
  readonly patienceMs?: number;
  /** Called before each wait for such a limit. */
  readonly onLimited?: (ms: number) => void;
  /** Waits between attempts. It rejects when the signal is aborted. */
  readonly wait?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/** The part of the standard `fetch` that is used; an `Error` whose cause says why, when there is no answer. */
export type Fetch = (url: string, init: FetchRequest) => Promise<FetchAnswer>;

export interface FetchRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  /** Signatures and invite tokens must not follow a redirect to another host. */
  readonly redirect: 'error';
  readonly signal: AbortSignal;
}

/** What a `Response` has. */
export interface FetchAnswer {
  readonly ok: boolean;
  readonly status: number;
  /** Names are in lower case. */
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  /** The same in pieces, as they come. Without it no events can be read, and nothing else ends a body that does not. */
  readonly body?: AnswerBody | null;
}

export interface AnswerBody {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array }>;
    /** Drops what is still to come; the reader then sees the end. */
    cancel(): Promise<void>;
  };
}

export type Headers = { readonly [name: string]: string };

/** What may differ from call to call; the last argument of every method. */
export interface CallOptions {
  /** Ends the call, and the wait before a repeat. */
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly headers?: Headers;
}

export interface SigningOptions extends ServerOptions {
  /** The authority's public key; read once from `/sovereign.json` when absent. */
  readonly audience?: string;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** A value never used before: 1..128 characters of `A-Z a-z 0-9 . _ : -`. */
  readonly nonce?: () => string;
}

/** What makes one signed request unique and fresh. */
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

/** 128 random bits; `crypto.randomUUID` is absent where a page came without TLS. */
function randomNonce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
