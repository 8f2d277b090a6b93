/**
 * Sends large bodies at the pace of their readers. uWebSockets.js would otherwise copy the unsent rest for
 * each reader. It closes a reader that accepts nothing for about 12 s.
 */
import { lastingBytes } from './lasting-bytes.ts';
import type { PieceTaker } from './piecewise.ts';
import type { FinishedReply } from './pipeline.ts';
import { type Closing, closingLine, writeHead } from './response.ts';

const LARGE_BYTES = 64 * 1024;

/** A 304 reply refers to a document but has no body. */
export function isLarge({ status }: FinishedReply, body: string | Uint8Array): boolean {
  return body.length > LARGE_BYTES && status !== 304;
}

/** Resolves once nothing more can be sent. */
export function sendLarge(
  taker: PieceTaker,
  reply: FinishedReply,
  body: string | Uint8Array,
  closing: Closing,
): Promise<void> {
  const { res } = taker;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  return new Promise((resolve) => {
    taker.onGone = resolve;
    let isComplete = false;
    res.cork(() => {
      writeHead(res, reply, closingLine(closing));
      [, isComplete] = res.tryEnd(bytes, bytes.length);
    });
    if (isComplete) return resolve();
    const lasting = lastingBytes(bytes);
    res.onWritable((offset) => {
      let isTaken = false;
      res.cork(() => {
        [isTaken, isComplete] = res.tryEnd(lasting.subarray(offset), bytes.length);
      });
      if (isComplete) resolve();
      return isTaken;
    });
  });
}
