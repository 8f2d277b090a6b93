/** With Node.js 24, uWebSockets.js writes a string whose characters are all below U+0100 as Latin-1. */
export function utf8(body: string): string | Buffer;
export function utf8(body: string | Uint8Array): string | Uint8Array;
export function utf8(body: string | Uint8Array): string | Uint8Array {
  return Buffer.byteLength(body) === body.length ? body : Buffer.from(body);
}
