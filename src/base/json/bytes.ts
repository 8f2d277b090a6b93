import { isAscii } from 'node:buffer';
import { parseJson } from './parse.ts';
import type { JsonValue } from './value.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes UTF-8 and parses one JSON document; throws `SyntaxError` when either is invalid. */
export function parseJsonBytes(bytes: Uint8Array, maxValues?: number): JsonValue {
  return parseJson(decodeUtf8(bytes), maxValues);
}

function decodeUtf8(bytes: Uint8Array): string {
  if (isAscii(bytes)) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  }
  try {
    return utf8.decode(bytes);
  } catch {
    throw new SyntaxError('The text is not valid UTF-8');
  }
}
