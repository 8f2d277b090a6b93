/** Sends a finished reply in the way that its body asks for. */

import type { FinishedReply } from './finish.ts';
import { isLarge, sendAtPace } from './paced-body.ts';
import { type PieceTaker, sendPieces } from './piecewise.ts';
import { isPiecewise, isStream } from './reply.ts';
import { type Closing, closingLine, writeHead, writeReply, writeWithoutBody } from './response.ts';

/** Returns once everything is handed over, or a promise of when nothing more can be sent. */
export function sendReply(
  taker: PieceTaker,
  method: string,
  reply: FinishedReply,
  closing: Closing,
): Promise<void> | null {
  const { res, aborted } = taker;
  const { body } = reply;
  if (!isPiecewise(body) && !isStream(body)) {
    if (aborted) return null;
    const hasBody = method !== 'HEAD' && reply.status !== 304;
    // Where the connection closes, no further answer comes behind this one.
    if (hasBody && (closing === 'stays' || isLarge(body))) {
      return sendAtPace(taker, reply, body, closing);
    }
    res.cork(() => writeReply(res, method, reply, body, closing));
    return null;
  }
  if (aborted || method === 'HEAD') {
    body.abandon();
    if (!aborted) res.cork(() => writeWithoutBody(res, reply, null, closing));
    return null;
  }
  res.cork(() => writeHead(res, reply, closingLine(closing)));
  if (isPiecewise(body)) return sendPieces(taker, body);
  // A stream may never end: nothing waits for it.
  body.begin(taker);
  return null;
}
