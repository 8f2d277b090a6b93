/** A connection to a signer, which must prove that it holds the key before it is used [signer-3]. */

import { connect, type Socket } from 'node:net';
import type { VerifySignature } from '../crypto/primitives.ts';
import { messageOf } from '../error-message.ts';
import { problemOf } from './address.ts';
import {
  challengeText,
  createSignerReader,
  MESSAGE,
  type MessageType,
  MOST_ANSWER_BYTES,
  MOST_BYTES,
  message,
} from './protocol.ts';

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
  /** Base64 of the key that the signer must hold. */
  readonly publicKey: string;
}

export interface SignerConnection {
  /** The 64-byte signature, verified; rejects with a one-sentence reason. */
  sign(text: Uint8Array): Promise<Buffer>;
  /** Checks that the signer answers, and ends the connection if it does not. */
  probe(): Promise<void>;
  end(reason: string): void;
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<string>;
}

export interface ConnectionOptions extends SignerAddress {
  readonly verify: VerifySignature;
  /** 32 random bytes. */
  nonce(): Buffer;
}

/** Rejects with a one-sentence error if nobody answers, or if the signer does not hold the key. */
export async function connectSigner(options: ConnectionOptions): Promise<SignerConnection> {
  const { path, publicKey } = options;
  const problem = problemOf(path);
  if (problem !== null)
    throw problem.isLasting ? new UnfitSigner(problem.sentence) : new Error(problem.sentence);
  const connection = talkOn(connect(path), options);
  const key = (await connection.ask(MESSAGE.askKey, Buffer.alloc(0), MESSAGE.key)).toString(
    'base64',
  );
  if (key !== publicKey) {
    const reason = `it holds the key ${key}, which is not the authority’s key`;
    connection.end(reason);
    throw new UnfitSigner(reason);
  }
  await connection.probe();
  return connection;
}

interface Question {
  readonly expected: MessageType;
  resolve(body: Buffer): void;
  reject(cause: Error): void;
}

function talkOn(socket: Socket, { publicKey, verify, nonce }: ConnectionOptions) {
  /** Answers arrive in the order of the requests. */
  const questions: Question[] = [];
  let reason: string | null = null;
  let hasEnded: (reason: string) => void;
  const ended = new Promise<string>((resolve) => {
    hasEnded = resolve;
  });

  function end(why: string): void {
    if (reason !== null) return;
    reason = why;
    socket.destroy();
    for (const { reject } of questions.splice(0)) reject(new Error(why));
    hasEnded(why);
  }

  function answered(type: number, body: Buffer): void {
    const question = questions.shift();
    if (question === undefined) end('it sent an answer without a request');
    else if (type === question.expected) question.resolve(body);
    else if (type === MESSAGE.refused) question.reject(new SignerRefusal(sentenceIn(body)));
    else {
      const why = `it answered with a message of type ${type}`;
      question.reject(new Error(why));
      end(why);
    }
  }

  const read = createSignerReader(MOST_ANSWER_BYTES, answered);
  socket.on('data', (piece: Buffer) => {
    try {
      read(piece);
    } catch (cause) {
      end(`it sends ${messageOf(cause)}`);
    }
  });
  socket.on('error', (cause) => end(cause.message));
  socket.once('close', () => end('it has closed the connection'));

  async function ask(type: MessageType, body: Uint8Array, expected: MessageType): Promise<Buffer> {
    if (reason !== null) throw new Error(reason);
    const patience = patienceFor(body.length);
    const late = setTimeout(() => end(`it has not answered within ${patience} ms`), patience);
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        questions.push({ expected, resolve, reject });
        socket.cork();
        for (const part of message(type, body)) socket.write(part);
        socket.uncork();
      });
    } finally {
      clearTimeout(late);
    }
  }

  async function sign(text: Uint8Array): Promise<Buffer> {
    if (text.length > MOST_BYTES) throw new SignerRefusal(`${text.length} bytes are too many`);
    const signature = await ask(MESSAGE.askSignature, text, MESSAGE.signature);
    if (verify(publicKey, text, signature.toString('base64'))) return signature;
    const why = 'it answered with a signature that does not verify';
    end(why);
    throw new Error(why);
  }

  async function probe(): Promise<void> {
    try {
      await sign(Buffer.from(challengeText(nonce())));
    } catch (cause) {
      end(messageOf(cause));
      throw cause;
    }
  }

  return { ask, sign, probe, end, ended };
}

/** A problem that waiting does not fix: the wrong key, or a socket that others can use. */
export class UnfitSigner extends Error {}

/** The signer works but refuses this text. */
export class SignerRefusal extends Error {}

/** Untrusted text is shortened and printed on one line. */
function sentenceIn(body: Buffer): string {
  return body
    .toString('utf8')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 200);
}
