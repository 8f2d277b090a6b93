/** A connection to a signer, which must prove that it holds the keys before it is used [signer-3]. */

import { connect, type Socket } from 'node:net';
import type { VerifySignature } from '../crypto/primitives.ts';
import { messageOf } from '../error-message.ts';
import { problemOf } from './address.ts';
import {
  challengeText,
  createSignerReader,
  KEY_BYTES,
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
  /** The keys that the signer must hold, in base64. */
  readonly publicKeys: readonly string[];
}

export interface SignerConnection {
  /** The keys that the signer has shown to hold, in base64. */
  readonly publicKeys: readonly string[];
  /** The 64-byte signature, verified; rejects with a one-sentence reason. */
  sign(publicKey: string, text: Uint8Array): Promise<Buffer>;
  /** Checks that the signer signs with these keys, and ends the connection if it does not. */
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

/** Rejects with a one-sentence error if nobody answers, or if the signer does not hold the keys. */
export async function connectSigner(options: ConnectionOptions): Promise<SignerConnection> {
  const { path, publicKeys: required } = options;
  const problem = problemOf(path);
  if (problem !== null)
    throw problem.isLasting ? new UnfitSigner(problem.sentence) : new Error(problem.sentence);
  const talk = talkOn(connect(path));
  const publicKeys = await keysHeld(talk);
  const missing = required.find((key) => !publicKeys.includes(key));
  if (missing !== undefined) {
    const reason = `it holds ${publicKeys.join(' and ')}, but not the authority’s key ${missing}: start it with that key, or configure the genesis block of the key that replaced it`;
    talk.end(reason);
    throw new UnfitSigner(reason);
  }
  const connection = signingOn(talk, publicKeys, options);
  await connection.probe(publicKeys);
  return connection;
}

/** A signer that refuses to list its keys has one. */
async function keysHeld({ ask }: Talk): Promise<readonly string[]> {
  try {
    const keys = await ask(MESSAGE.askKeys, [], MESSAGE.keys);
    const count = Math.floor(keys.length / KEY_BYTES);
    return Array.from({ length: count }, (_, at) =>
      keys.toString('base64', at * KEY_BYTES, (at + 1) * KEY_BYTES),
    );
  } catch (cause) {
    if (!(cause instanceof SignerRefusal)) throw cause;
    return [(await ask(MESSAGE.askKey, [], MESSAGE.key)).toString('base64')];
  }
}

interface Talk {
  /** `body` may have several parts. */
  ask(type: MessageType, body: readonly Uint8Array[], expected: MessageType): Promise<Buffer>;
  end(reason: string): void;
  readonly ended: Promise<string>;
}

function signingOn(
  { ask, end, ended }: Talk,
  publicKeys: readonly string[],
  { verify, nonce }: ConnectionOptions,
): SignerConnection {
  async function sign(publicKey: string, text: Uint8Array): Promise<Buffer> {
    if (text.length > MOST_BYTES - KEY_BYTES) {
      throw new SignerRefusal(`${text.length} bytes are too many`);
    }
    const signature = await (publicKey === publicKeys[0]
      ? ask(MESSAGE.askSignature, [text], MESSAGE.signature)
      : ask(MESSAGE.askSignatureWith, [Buffer.from(publicKey, 'base64'), text], MESSAGE.signature));
    if (verify(publicKey, text, signature.toString('base64'))) return signature;
    const why = 'it answered with a signature that does not verify';
    end(why);
    throw new Error(why);
  }

  async function probe(keys: readonly string[]): Promise<void> {
    try {
      for (const key of keys) await sign(key, Buffer.from(challengeText(nonce())));
    } catch (cause) {
      end(messageOf(cause));
      throw cause;
    }
  }

  return { publicKeys, sign, probe, end, ended };
}

interface Question {
  readonly expected: MessageType;
  resolve(body: Buffer): void;
  reject(cause: Error): void;
}

function talkOn(socket: Socket): Talk {
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

  async function ask(
    type: MessageType,
    body: readonly Uint8Array[],
    expected: MessageType,
  ): Promise<Buffer> {
    if (reason !== null) throw new Error(reason);
    const patience = patienceFor(body.reduce((sum, { length }) => sum + length, 0));
    const late = setTimeout(() => end(`it has not answered within ${patience} ms`), patience);
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        questions.push({ expected, resolve, reject });
        socket.cork();
        for (const part of message(type, ...body)) socket.write(part);
        socket.uncork();
      });
    } finally {
      clearTimeout(late);
    }
  }

  return { ask, end, ended };
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
