/** Builds large documents in slices, so that other commands run in between. */
import { createHash } from 'node:crypto';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';

/** Characters per slice: rendering these takes the authority a few milliseconds. */
const CHARACTERS_PER_SLICE = 128 * 1024;

/** Bytes copied per slice; copying is much cheaper. */
const COPIED_PER_SLICE = 4 * 1024 * 1024;

export interface BuiltDocument {
  readonly document: PublishedDocument;
  /** Hex SHA-256 of its bytes. */
  readonly digest: string;
}

/** Builds a document from pieces of its text; yields after each slice of work. */
export function* buildDocument(
  pieces: Iterable<string>,
  freshUntil: number,
): Generator<void, BuiltDocument> {
  const hash = createHash('sha256');
  const parts: Buffer[] = [];
  let length = 0;
  let inSlice = 0;
  for (const piece of pieces) {
    const part = Buffer.from(piece, 'utf8');
    hash.update(part);
    parts.push(part);
    length += part.length;
    inSlice += part.length;
    if (inSlice < CHARACTERS_PER_SLICE) continue;
    inSlice = 0;
    yield;
  }
  const bytes = Buffer.from(new SharedArrayBuffer(length));
  let at = 0;
  let copied = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
    copied += part.length;
    if (copied < COPIED_PER_SLICE) continue;
    copied = 0;
    yield;
  }
  const digest = hash.digest('hex');
  return { document: { bytes, etag: `"${digest.slice(0, 32)}"`, freshUntil }, digest };
}
