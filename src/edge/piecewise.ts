/**
 * Streams bodies that are produced while they are sent: each piece after the client has accepted the one
 * before.
 */
import type { HttpResponse } from 'uWebSockets.js';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PiecewiseBody } from './reply.ts';

/** A response whose head was written, as the sender of its body sees it. */
export interface PieceTaker {
  readonly res: HttpResponse;
  aborted: boolean;
  /** Called when the client has disconnected. */
  onGone: (() => void) | null;
}

/**
 * Resolves once nothing more can be sent. If a body cannot be completed, the connection is closed, so that
 * the client does not take it for complete. That the connection closes is said in the head alone: asked to close at
 * the end, uWebSockets.js would write so between the pieces.
 */
export async function sendPieces(taker: PieceTaker, body: PiecewiseBody): Promise<void> {
  const { res } = taker;
  const room = roomIn(taker);
  try {
    while (!taker.aborted) {
      const piece = await body.next();
      if (piece === null) {
        if (!taker.aborted) res.cork(() => res.end());
        return;
      }
      // Yield between two pieces, however fast this client reads.
      if (!taker.aborted) await (sendPiece(res, piece) ? nextTurn() : room());
    }
    body.abandon();
  } catch {
    if (!taker.aborted) res.close();
  }
}

/** Waits until the client has accepted what was sent, or has disconnected. */
function roomIn(taker: PieceTaker): () => Promise<void> {
  let wake: (() => void) | null = null;
  function wakeUp(): void {
    wake?.();
    wake = null;
  }
  taker.onGone = wakeUp;
  if (!taker.aborted) {
    taker.res.onWritable(() => {
      wakeUp();
      return true;
    });
  }
  return () =>
    new Promise((resolve) => {
      wake = resolve;
    });
}

/** False when part of it is still buffered. */
function sendPiece(res: HttpResponse, piece: string): boolean {
  let isTaken = true;
  res.cork(() => {
    isTaken = res.write(piece);
  });
  return isTaken;
}
