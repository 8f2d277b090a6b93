/** The messages between an authority and its signer, and what it signs to show that it is one [signer-2]. */

export const MESSAGE = { askKey: 1, askSignature: 2, key: 3, signature: 4, refused: 5 } as const;

export type MessageType = (typeof MESSAGE)[keyof typeof MESSAGE];

/** The longest text that is signed, in bytes: a revocation list of a million entries. */
export const MOST_BYTES = 256 * 1024 ** 2;
/** The longest answer with a key, a signature or a reason. */
export const MOST_ANSWER_BYTES = 1024;

const HEAD_BYTES = 4;

/** The length of what follows in four bytes, the type in one, and the body. */
export function message(type: MessageType, body: Uint8Array = Buffer.alloc(0)): Buffer[] {
  const head = Buffer.alloc(HEAD_BYTES + 1);
  head.writeUInt32BE(1 + body.length);
  head[HEAD_BYTES] = type;
  return [head, Buffer.from(body.buffer, body.byteOffset, body.byteLength)];
}

/**
 * Takes what arrives, in pieces of any length, and calls back with each whole message. Throws one sentence when a
 * body would be longer than `most`, before it has arrived.
 */
export function createMessageReader(
  most: number,
  take: (type: number, body: Buffer) => void,
): (piece: Buffer) => void {
  let pieces: Buffer[] = [];
  let size = 0;
  let wanted = HEAD_BYTES;
  let isHead = true;

  function takePart(): void {
    const all = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, size);
    const part = all.subarray(0, wanted);
    const rest = all.subarray(wanted);
    pieces = rest.length === 0 ? [] : [rest];
    size = rest.length;
    if (isHead) {
      wanted = part.readUInt32BE(0);
      if (wanted === 0 || wanted > 1 + most) throw new Error(`A message of ${wanted} bytes`);
    } else {
      wanted = HEAD_BYTES;
      take(part[0] ?? 0, part.subarray(1));
    }
    isHead = !isHead;
  }

  return (piece) => {
    pieces.push(piece);
    size += piece.length;
    while (size >= wanted) takePart();
  };
}

/** No record begins like this text, so the signature is of no use elsewhere. */
const LABEL = 'mesh-na signer 1';

export const CHALLENGE_BYTES = 32;

/** What a signer signs to show that it holds the key; `nonce` has 32 bytes. */
export function challengeText(nonce: Uint8Array): string {
  return `${LABEL}\n${Buffer.from(nonce).toString('hex')}`;
}
