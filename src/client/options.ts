/** What every client takes, and the clock and nonce source that tests replace. */
export interface ServerOptions {
  /** Base URL of the authority; a path prefix a proxy strips may follow the host. */
  readonly url: string;
  /** Milliseconds until a request without a whole answer counts as unanswered. */
  readonly timeoutMs?: number;
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

export function newStamp({ now = Date.now, nonce = randomNonce }: SigningOptions): Stamp {
  return { timestamp: new Date(now()).toISOString(), nonce: nonce() };
}

function randomNonce(): string {
  return crypto.randomUUID();
}
