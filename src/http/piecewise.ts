/** Sends bodies that are made while they are sent: a piece, then the next once the client took that one. */
import type { HttpResponse } from 'uWebSockets.js';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PiecewiseBody } from './reply.ts';

/** A response whose head was written, as far as whoever sends its body has to know of it. */
export interface PieceTaker {
  readonly res: HttpResponse;
  aborted: boolean;
  /** Called when the client has gone. */
  onGone: (() => void) | null;
}

/**
 * Resolves once nothing more can be sent. A body that cannot be completed ends with its connection, so
 * that the client does not take it for whole.
 */
export async function sendPieces(
  taker: PieceTaker,
  body: PiecewiseBody,
  close: boolean,
): Promise<void> {
  const { res } = taker;
  const room = roomIn(taker);
  try {
    while (!taker.aborted) {
      const piece = await body.next();
      if (piece === null) {
        if (!taker.aborted) res.cork(() => res.end('', close));
        return;
      }
      // Others have their turn between two pieces, however fast this client takes them.
      if (!taker.aborted) await (sendPiece(res, piece) ? nextTurn() : room());
    }
    body.abandon();
  } catch {
    if (!taker.aborted) res.close();
  }
}

/** Waits until the client has taken what was sent, or has gone. */
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

/** False when the client has yet to take some of it. */
function sendPiece(res: HttpResponse, piece: string): boolean {
  let isTaken = true;
  res.cork(() => {
    isTaken = res.write(piece);
  });
  return isTaken;
}
