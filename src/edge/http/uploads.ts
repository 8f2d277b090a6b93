/**
 * Request bodies in transit. Their number and total size on this edge are limited, for any number of connections:
 * beyond the limits, the body that has been idle longest is dropped.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { ReceivedBody } from '../request/parse.ts';

export interface UploadLimits {
  readonly count: number;
  /** The total for all unfinished bodies. */
  readonly bytes: number;
}

export const UPLOAD_LIMITS: UploadLimits = { count: 8192, bytes: 64 * 1024 * 1024 };

/** A body that is too large is read and discarded up to this many bytes before it is refused. */
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/** Small enough for tiny bodies, large enough to grow only rarely. */
const FIRST_BUFFER_BYTES = 4096;

/**
 * A body that is too large is still read up to this size: a client that is answered while it sends may miss
 * the answer.
 */
export function bytesRead(limit: number): number {
  return Math.max(MAX_DISCARDED_BYTES, limit);
}

export type Uploads = ReturnType<typeof createUploads>;

export function createUploads(limits: UploadLimits) {
  /** Unfinished bodies, longest idle first. */
  const unfinished = new Set<UnfinishedUpload>();
  let heldBytes = 0;

  function release(upload: UnfinishedUpload): void {
    if (unfinished.delete(upload)) heldBytes -= upload.capacity;
  }

  function drop(upload: UnfinishedUpload): void {
    release(upload);
    upload.end('dropped');
  }

  /** Looks for it only if there is too much: an iterator first skips all that have made progress since. */
  function dropIdlest(): void {
    while (unfinished.size > limits.count || heldBytes > limits.bytes) {
      const [idlest] = unfinished;
      if (idlest === undefined) return;
      drop(idlest);
    }
  }

  function noteProgress(upload: UnfinishedUpload): void {
    unfinished.delete(upload);
    unfinished.add(upload);
  }

  return {
    /**
     * Delivers the body once: complete, too large or dropped. Returns a function to call when the sender has
     * disconnected; nothing is delivered then.
     */
    receive(res: HttpResponse, limit: number, take: (body: ReceivedBody) => void): () => void {
      const upload = new UnfinishedUpload(limit, take);
      unfinished.add(upload);
      res.onData((chunk, isLast) => {
        if (upload.ended) return;
        if (isLast) {
          release(upload);
          upload.complete(new Uint8Array(chunk));
          return;
        }
        const before = upload.capacity;
        upload.append(new Uint8Array(chunk));
        heldBytes += upload.capacity - before;
        noteProgress(upload);
        if (upload.received > bytesRead(limit)) {
          release(upload);
          upload.end('too_large');
        }
        dropIdlest();
      });
      dropIdlest();
      return () => release(upload);
    },
    /** Drops every body that has not ended. */
    dropAll(): void {
      for (const upload of unfinished) drop(upload);
    },
  };
}

/** One body. A body in a single piece, as nearly all are, is not copied. */
class UnfinishedUpload {
  received = 0;
  ended = false;
  readonly #limit: number;
  readonly #take: (body: ReceivedBody) => void;
  #buffer: Buffer | null = null;

  constructor(limit: number, take: (body: ReceivedBody) => void) {
    this.#limit = limit;
    this.#take = take;
  }

  /** The bytes of memory in use. */
  get capacity(): number {
    return this.#buffer?.length ?? 0;
  }

  append(chunk: Uint8Array): void {
    const start = this.received;
    this.received += chunk.length;
    if (this.received > this.#limit) {
      this.#buffer = null;
    } else if (chunk.length > 0) {
      this.#buffer = withRoom(this.#buffer, start, this.received, this.#limit);
      this.#buffer.set(chunk, start);
    }
  }

  /** The bytes of a body in one piece are valid only during the call that receives them. */
  complete(chunk: Uint8Array): void {
    if (this.received === 0 && chunk.length <= this.#limit) {
      this.end(chunk);
    } else {
      this.append(chunk);
      this.end(this.#buffer?.subarray(0, this.received) ?? 'too_large');
    }
  }

  end(body: ReceivedBody): void {
    this.ended = true;
    this.#buffer = null;
    this.#take(body);
  }
}

/** A buffer of at least `needed` bytes that begins with the `used` bytes of the old one. */
function withRoom(buffer: Buffer | null, used: number, needed: number, limit: number): Buffer {
  if (buffer !== null && buffer.length >= needed) return buffer;
  const size = Math.min(limit, Math.max(FIRST_BUFFER_BYTES, needed, 2 * (buffer?.length ?? 0)));
  // Pooled memory would keep an entire slab alive for a few bytes.
  const grown = Buffer.allocUnsafeSlow(size);
  buffer?.copy(grown, 0, 0, used);
  return grown;
}
