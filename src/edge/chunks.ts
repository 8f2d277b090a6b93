/** Writes pieces of a chunked body [RFC 9112, 7.1]. */

export interface ChunkedResponse {
  cork(write: () => void): unknown;
  /** False if part of it is buffered. */
  write(bytes: string | Uint8Array): boolean;
}

/**
 * The largest chunk. With its length, it fits into the 16 KiB in which uWebSockets.js gathers what is written while a
 * response is corked: if the socket is full, uWebSockets.js keeps those, but loses a longer chunk whose length it had to
 * keep.
 */
const MOST_BYTES = 15 * 1024;

/** False if the client has not accepted everything: the rest is buffered. */
export function writeChunks(res: ChunkedResponse, piece: string | Uint8Array): boolean {
  const bytes = utf8(piece);
  let isTaken = true;
  for (let at = 0; at < bytes.length; at += MOST_BYTES) {
    const end = at + MOST_BYTES;
    const chunk = typeof bytes === 'string' ? bytes.slice(at, end) : bytes.subarray(at, end);
    res.cork(() => {
      isTaken = res.write(chunk);
    });
  }
  return isTaken;
}

/** With Node.js 24, uWebSockets.js writes a string whose characters are all below U+0100 as Latin-1. */
export function utf8(body: string): string | Buffer;
export function utf8(body: string | Uint8Array): string | Uint8Array;
export function utf8(body: string | Uint8Array): string | Uint8Array {
  return Buffer.byteLength(body) === body.length ? body : Buffer.from(body);
}
