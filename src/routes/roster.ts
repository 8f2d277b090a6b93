/** The operators' roster of active nodes, read from the authority in pieces [core-4-15]. */
import type { OperatorClaim } from '../contract/claims.ts';
import type { Edge } from '../http/edge.ts';
import {
  answerReply,
  jsonReply,
  type PiecewiseBody,
  piecewiseReply,
  type Reply,
} from '../http/reply.ts';
import { NOTHING } from '../http/route.ts';

/** Answers a roster of one piece at once; a longer one is sent while it is read. */
export async function rosterReply(operator: OperatorClaim, edge: Edge): Promise<Reply> {
  const opened = await edge.call('openRoster', { operator, input: NOTHING });
  if (!opened.ok) return answerReply(opened);
  const { roster, count } = JSON.parse(opened.json) as { roster: number; count: number };
  const first = await readPiece(roster, edge);
  const second = first === '' ? '' : await readPiece(roster, edge);
  const start = `{"count":${count},"nodes":{${first}`;
  return second === ''
    ? jsonReply(200, `${start}}}`)
    : piecewiseReply(rosterBody([start, `,${second}`], roster, edge));
}

/** The pieces already read, then all others. */
function rosterBody(ready: string[], roster: number, edge: Edge): PiecewiseBody {
  let isRead = false;
  return {
    async next() {
      const known = ready.shift();
      if (known !== undefined) return known;
      if (isRead) return null;
      const piece = await readPiece(roster, edge);
      isRead = piece === '';
      return isRead ? '}}' : `,${piece}`;
    },
    abandon() {
      void edge.call('closeRoster', roster);
    },
  };
}

/** Members of `nodes`; empty at the end. Another roster may have replaced this one meanwhile. */
async function readPiece(roster: number, edge: Edge): Promise<string> {
  const answer = await edge.call('readRoster', roster);
  if (!answer.ok) throw new Error('The roster was closed before it was read to its end');
  return answer.json;
}
