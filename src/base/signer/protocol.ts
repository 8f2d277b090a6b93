/**
 * The messages between an authority and its signer, and the text the signer signs to prove that it holds the key
 * [signer-2].
 */

import { createMessageReader, LENGTH_BYTES } from '../length-prefixed.ts';

export const MESSAGE = {
  askKey: 1,
  askSignature: 2,
  key: 3,
  signature: 4,
  refused: 5,
  askKeys: 6,
  keys: 7,
  askSignatureWith: 8,
} as const;

export type MessageType = (typeof MESSAGE)[keyof typeof MESSAGE];

/** The longest body of a message, in bytes: a revocation list of a million entries. */
export const MOST_BYTES = 256 * 1024 ** 2;
/** The length of a public key. */
export const KEY_BYTES = 32;
/** The longest answer with keys, a signature or a reason. */
export const MOST_ANSWER_BYTES = 1024;

/** Four bytes with the length of the rest, one byte with the type, and the parts of the body. */
export function message(type: MessageType, ...body: readonly Uint8Array[]): Buffer[] {
  const head = Buffer.alloc(LENGTH_BYTES + 1);
  head.writeUInt32BE(body.reduce((sum, { length }) => sum + length, 1));
  head[LENGTH_BYTES] = type;
  const parts = body.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  return [head, ...parts];
}

/**
 * Accepts chunks of any length and calls back with each complete message. Throws a one-sentence error if a body would
 * be longer than `most`, before it arrives.
 */
export function createSignerReader(
  most: number,
  take: (type: number, body: Buffer) => void,
): (piece: Buffer) => void {
  return createMessageReader(
    (bytes) => {
      if (bytes === 0 || bytes > 1 + most) throw new Error(`A message of ${bytes} bytes`);
    },
    (whole) => take(whole[0] ?? 0, whole.subarray(1)),
  );
}

/** No record begins with this text, so the signature is useless elsewhere. */
const LABEL = 'mesh-na signer 1';

export const CHALLENGE_BYTES = 32;

/** The text a signer signs to prove that it holds the key; `nonce` has 32 bytes. */
export function challengeText(nonce: Uint8Array): string {
  return `${LABEL}\n${Buffer.from(nonce).toString('hex')}`;
}

/** A text without meaning that an authority has signed to check that the signer is alive. */
export const PROBE = `${LABEL}\nprobe`;
