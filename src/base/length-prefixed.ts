/** Messages on a byte stream: a four-byte big-endian length followed by that many bytes. */

export const LENGTH_BYTES = 4;

/**
 * Accepts chunks of any length and calls back with each complete message. `assertLength` throws for an invalid message
 * length before the body arrives.
 */
export function createMessageReader(
  assertLength: (bytes: number) => void,
  take: (message: Buffer) => void,
): (piece: Buffer) => void {
  let pieces: Buffer[] = [];
  let size = 0;
  let wanted = LENGTH_BYTES;
  let isLength = true;

  function takePart(): void {
    const all = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces, size);
    const part = all.subarray(0, wanted);
    const rest = all.subarray(wanted);
    pieces = rest.length === 0 ? [] : [rest];
    size = rest.length;
    if (isLength) {
      wanted = part.readUInt32BE(0);
      assertLength(wanted);
    } else {
      wanted = LENGTH_BYTES;
      take(part);
    }
    isLength = !isLength;
  }

  return (piece) => {
    pieces.push(piece);
    size += piece.length;
    while (size >= wanted) takePart();
  };
}
