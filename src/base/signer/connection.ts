/** A connection to a signer, which must prove that it holds the keys before it is used [signer-3]. */
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http';
import type { Socket } from 'node:net';
import type { VerifySignature } from '../crypto/primitives.ts';
import { messageOf } from '../error-message.ts';
import { challengeText, KEY_HEADER, MOST_ANSWER_BYTES, MOST_BYTES, problemOf } from './protocol.ts';

/**
 * The longest a signer may take to answer a short request; long texts are hashed at more than this many bytes per
 * millisecond.
 */
const ANSWER_MS = 1000;
const BYTES_A_MS = 10_000;

export function patienceFor(bytes: number): number {
  return ANSWER_MS + Math.ceil(bytes / BYTES_A_MS);
}

export interface SignerAddress {
  readonly path: string;
  /** The keys that the signer must hold, in base64. */
  readonly publicKeys: readonly string[];
}

export interface SignerConnection {
  /** The keys that the signer has shown to hold, in base64. */
  readonly publicKeys: readonly string[];
  /** The 64-byte signature, verified; rejects with a one-sentence reason. */
  sign(publicKey: string, text: Uint8Array): Promise<Buffer>;
  /**
   * Checks that the signer signs with these keys, and ends the connection if it does not. A request in progress shows
   * that as well.
   */
  probe(publicKeys: readonly string[]): Promise<void>;
  end(reason: string): void;
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<string>;
}

export interface ConnectionOptions extends SignerAddress {
  readonly verify: VerifySignature;
  /** 32 random bytes. */
  nonce(): Buffer;
}

/** A problem that waiting does not fix: the wrong key, or a socket that others can use. */
export class UnfitSigner extends Error {}

/** The signer works but refuses this text. */
export class SignerRefusal extends Error {}

/** Rejects with a one-sentence error if nobody answers, or if the signer does not hold the keys. */
export async function connectSigner(options: ConnectionOptions): Promise<SignerConnection> {
  const { path, publicKeys: required, verify, nonce } = options;
  const problem = problemOf(path);
  if (problem !== null)
    throw problem.isLasting ? new UnfitSigner(problem.sentence) : new Error(problem.sentence);
  const { ask, isAsked, end, ended } = talkAt(path);

  async function sign(publicKey: string, text: Uint8Array): Promise<Buffer> {
    if (text.length > MOST_BYTES) throw new SignerRefusal(`${text.length} bytes are too many`);
    const headers = { [KEY_HEADER]: publicKey };
    const signature = await ask({ method: 'POST', path: '/sign', headers }, text);
    if (verify(publicKey, text, signature)) return Buffer.from(signature, 'base64');
    const why = 'it answered with a signature that does not verify';
    end(why);
    throw new Error(why);
  }

  async function prove(publicKeys: readonly string[]): Promise<void> {
    try {
      for (const key of publicKeys) await sign(key, Buffer.from(challengeText(nonce())));
    } catch (cause) {
      end(messageOf(cause));
      throw cause;
    }
  }

  async function keysHeld(): Promise<readonly string[]> {
    const answer = await ask({ path: '/keys' });
    if (KEYS.test(answer)) return answer.split('\n');
    throw new Error(`it answered with ${printable(answer)}`);
  }

  const publicKeys = await keysHeld().catch((cause) => {
    end(messageOf(cause));
    throw cause;
  });
  const missing = required.find((key) => !publicKeys.includes(key));
  if (missing !== undefined) {
    const reason = `it holds ${publicKeys.join(' and ')}, but not the authority’s key ${missing}: start it with that key, or configure the genesis block of the key that replaced it`;
    end(reason);
    throw new UnfitSigner(reason);
  }
  await prove(publicKeys);
  return {
    publicKeys,
    sign,
    probe: (keys) => (isAsked() ? Promise.resolve() : prove(keys)),
    end,
    ended,
  };
}

const KEYS = /^[A-Za-z0-9+/]{43}=(?:\n[A-Za-z0-9+/]{43}=){0,31}$/;

/** Requests on one connection, which is not replaced when it ends: another signer may be listening then. */
function talkAt(socketPath: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const over = new AbortController();
  const ended = new Promise<string>((resolve) => {
    over.signal.addEventListener('abort', () => resolve(String(over.signal.reason)));
  });
  let connected: Socket | null = null;
  let asked = 0;

  /** Only the first reason counts. */
  function end(why: string): void {
    over.abort(why);
    agent.destroy();
  }

  function send(options: RequestOptions, body?: Uint8Array): Promise<Received> {
    return new Promise((resolve, reject) => {
      const sent = request({ ...options, socketPath, agent, signal: over.signal }, (answer) => {
        receive(answer).then(resolve, reject);
      });
      sent.on('error', reject);
      sent.once('socket', (socket) => {
        if (socket === connected) return;
        if (connected !== null) return end(CLOSED);
        connected = socket;
        // A request in progress reports the end itself, and knows more about it.
        socket.once('close', () => asked === 0 && end(CLOSED));
      });
      sent.end(body);
    });
  }

  /** The text of the answer, without a line feed at its end. */
  async function ask(options: RequestOptions, body?: Uint8Array): Promise<string> {
    const patience = patienceFor(body?.length ?? 0);
    const late = setTimeout(() => end(`it has not answered within ${patience} ms`), patience);
    asked += 1;
    try {
      over.signal.throwIfAborted();
      const { status, text } = await send(options, body);
      if (status === 200) return text.trimEnd();
      if (status >= 400 && status < 500) throw new SignerRefusal(printable(text));
      throw new Error(`it answered with the status ${status}`);
    } catch (cause) {
      if (cause instanceof SignerRefusal) throw cause;
      end(isHangUp(cause) ? CLOSED : messageOf(cause));
      throw new Error(await ended);
    } finally {
      asked -= 1;
      clearTimeout(late);
    }
  }

  return { ask, isAsked: () => asked > 0, end, ended };
}

const CLOSED = 'it has closed the connection';

function isHangUp(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNRESET';
}

interface Received {
  readonly status: number;
  readonly text: string;
}

async function receive(answer: IncomingMessage): Promise<Received> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > MOST_ANSWER_BYTES) throw new Error('its answer is too long');
  }
  return { status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() };
}

/** Untrusted text is shortened and printed on one line. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);
}
