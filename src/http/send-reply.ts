/** Sends a finished reply in the way that its body asks for. */
import { isLarge, sendLarge } from './large-body.ts';
import { type PieceTaker, sendPieces } from './piecewise.ts';
import type { FinishedReply } from './pipeline.ts';
import { isPiecewise } from './reply.ts';
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
  if (!isPiecewise(body)) {
    if (aborted) return null;
    if (isLarge(reply, body) && method !== 'HEAD') return sendLarge(taker, reply, body, closing);
    res.cork(() => writeReply(res, method, reply, body, closing));
    return null;
  }
  if (method === 'HEAD') {
    body.abandon();
    if (!aborted) res.cork(() => writeWithoutBody(res, reply, null, closing));
    return null;
  }
  if (!aborted) res.cork(() => writeHead(res, reply, closingLine(closing)));
  return sendPieces(taker, body);
}
