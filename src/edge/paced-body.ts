/**
 * Sends bodies at the pace of their readers. uWebSockets.js would otherwise copy the unsent rest for each reader, and
 * of every further answer to one who reads nothing. It closes a reader that accepts nothing for about 12 s, and one
 * that asks again before it has accepted an answer.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { FinishedReply } from './finish.ts';
import { lastingBytes } from './lasting-bytes.ts';
import type { PieceTaker } from './piecewise.ts';
import { type Closing, closingLine, writeHead } from './response.ts';

const LARGE_BYTES = 64 * 1024;
/** Of all bodies for which slow readers of a thread wait; those that many of them share count once. */
const MOST_WAITING_BYTES = 128 * 1024 * 1024;

export function isLarge(body: string | Uint8Array): boolean {
  return body.length > LARGE_BYTES;
}

/** Who waits for each body; the one that was begun first comes first. */
const waiting = new Map<Uint8Array, Set<HttpResponse>>();
let waitingBytes = 0;

function wait(bytes: Uint8Array, res: HttpResponse): void {
  const others = waiting.get(bytes);
  if (others === undefined) {
    waiting.set(bytes, new Set([res]));
    waitingBytes += bytes.byteLength;
  } else others.add(res);
  for (const [oldest, readers] of waiting) {
    // The newest is sent, however long it is.
    if (waitingBytes <= MOST_WAITING_BYTES || oldest === bytes) return;
    for (const reader of readers) reader.close();
  }
}

function leave(bytes: Uint8Array, res: HttpResponse): void {
  const readers = waiting.get(bytes);
  if (readers?.delete(res) !== true || readers.size > 0) return;
  waiting.delete(bytes);
  waitingBytes -= bytes.byteLength;
}

/** Returns null when all of it is accepted at once, or a promise of when nothing more can be sent. */
export function sendAtPace(
  taker: PieceTaker,
  reply: FinishedReply,
  body: string | Uint8Array,
  closing: Closing,
): Promise<void> | null {
  const { res } = taker;
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  let isComplete = false;
  res.cork(() => {
    writeHead(res, reply, closingLine(closing));
    [, isComplete] = res.tryEnd(body, length);
  });
  if (isComplete) return null;
  const lasting = typeof body === 'string' ? Buffer.from(body) : lastingBytes(body);
  return new Promise((resolve) => {
    taker.onGone = () => {
      leave(lasting, res);
      resolve();
    };
    res.onWritable((offset) => {
      let isTaken = false;
      res.cork(() => {
        [isTaken, isComplete] = res.tryEnd(lasting.subarray(offset), length);
      });
      if (isComplete) taker.onGone?.();
      return isTaken;
    });
    wait(lasting, res);
  });
}
