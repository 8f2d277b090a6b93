/**
 * The last answers that this instance has passed on of the documents that it may serve while nobody is active [link-6].
 * All threads have the same ones.
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';

export interface Copy {
  readonly path: string;
  /** With the validator of the answer. */
  readonly document: PublishedDocument;
  /** Before its request was sent, in milliseconds since the epoch: it contains what was acknowledged until then. */
  readonly since: number;
}

/** What all threads learn of a copy. */
export interface CopyNotice extends Omit<Copy, 'document'> {
  readonly etag: string;
  /** Null if they have it already, and only its time is new: it may be long. */
  readonly document: PublishedDocument | null;
}

/** The answer to a request for a document. */
export interface PassedDocument {
  readonly path: string;
  readonly etag: string;
  readonly isCompressed: boolean;
  readonly since: number;
}

export interface CopiesOptions {
  /** Gives a copy to all threads, this one included. */
  share(copy: CopyNotice): void;
  elapsed(): number;
}

/** A longer document is not kept. */
const MOST_BYTES = 64 * 1024 ** 2;
/** A copy is confirmed at most this often, and collected again from a faster client after this time. */
const APART_MS = 1000;

interface Collecting {
  readonly etag: string;
  readonly began: number;
}

/** Collects the bytes of a body. */
export interface Collector {
  add(chunk: Uint8Array): void;
  complete(): void;
}

const decompress = promisify(gunzip);

export function createCopies({ share, elapsed }: CopiesOptions) {
  const copies = new Map<string, Copy>();
  /** By path; a version that is being collected is not collected twice at the same time. */
  const collecting = new Map<string, Collecting>();

  async function keep(given: PassedDocument, chunks: readonly Uint8Array[]): Promise<void> {
    const { path, etag, since } = given;
    const sent = Buffer.concat(chunks);
    const plain = given.isCompressed
      ? await decompress(sent, { maxOutputLength: MOST_BYTES }).catch(() => null)
      : sent;
    if (plain === null) return;
    // Not in shared memory, for which V8 does not account: each version would stay for long.
    give({ path, etag, since, document: { bytes: plain, etag, freshUntil: since } });
  }

  function give(copy: CopyNotice): void {
    take(copy);
    share(copy);
  }

  /** An older answer may arrive after a newer one. */
  function take({ path, etag, since, document }: CopyNotice): void {
    const known = copies.get(path);
    const current = document ?? known?.document;
    if (current?.etag !== etag || (known !== undefined && since < known.since)) return;
    copies.set(path, { path, document: current, since });
  }

  function confirm({ path, document: { etag }, ...known }: Copy, since: number): void {
    if (since >= known.since + APART_MS) give({ path, etag, since, document: null });
  }

  return {
    take,
    get: (path: string) => copies.get(path),
    /** Notes an answer; null if its body need not be collected. */
    note(status: number, given: PassedDocument): Collector | null {
      const { path, etag } = given;
      const known = copies.get(path);
      const isKnown = known?.document.etag === etag;
      if (isKnown) confirm(known, given.since);
      if (status !== 200 || etag === '' || isKnown) return null;
      const other = collecting.get(path);
      if (other?.etag === etag && elapsed() < other.began + APART_MS) return null;
      const own = { etag, began: elapsed() };
      collecting.set(path, own);
      let chunks: Uint8Array[] = [];
      let length = 0;
      const isCurrent = () => collecting.get(path) === own;
      return {
        add(chunk) {
          length += chunk.byteLength;
          if (length > MOST_BYTES || !isCurrent()) chunks = [];
          else chunks.push(chunk);
        },
        complete() {
          if (!isCurrent()) return;
          collecting.delete(path);
          if (length <= MOST_BYTES) void keep(given, chunks);
        },
      };
    },
  };
}
