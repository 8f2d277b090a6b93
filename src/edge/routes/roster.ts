/** The count of active nodes, and the roster for operators, read from the authority in pieces [core-4-15]. */
import { setTimeout as pause } from 'node:timers/promises';
import type { OperatorClaim } from '../../protocol/contract/claims.ts';
import type { Edge } from '../edge.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { answerReply, jsonReply, piecewiseReply, type Reply } from '../reply.ts';

export const rosterParts = {
  countNodes: {
    answer: async (_asked, { operator }, edge) =>
      operator === null
        ? answerReply(await edge.call('countNodes', null))
        : rosterReply(operator, edge),
  },
} satisfies EdgeParts;

/** A long roster pauses for this share of the time spent on its pieces, to leave the threads to heartbeats. */
const REST = 0.25;
const LEAST_REST_MS = 1;
const LONGEST_REST_MS = 20;

/** Answers a roster of one piece at once; a longer one is sent while it is read. */
async function rosterReply(operator: OperatorClaim, edge: Edge): Promise<Reply> {
  const opened = await edge.call('openRoster', { operator, input: { ok: true, value: null } });
  if (!opened.ok) return answerReply(opened);
  const { roster, count } = JSON.parse(opened.json) as { roster: number; count: number };
  const first = await readPiece(roster, edge);
  const second = first === '' ? '' : await readPiece(roster, edge);
  const start = `{"count":${count},"nodes":{${first}`;
  return second === ''
    ? jsonReply(200, `${start}}}`)
    : piecewiseReply(
        rosterBody([start, `,${second}`], roster, edge),
        () => void edge.call('closeRoster', roster),
      );
}

/** The pieces already read, then all others. */
async function* rosterBody(
  ready: readonly string[],
  roster: number,
  edge: Edge,
): AsyncGenerator<string, void> {
  const { elapsed } = edge.runtime;
  yield* ready;
  for (let restMs = 0; ; ) {
    if (restMs >= LEAST_REST_MS) {
      await pause(Math.min(restMs, LONGEST_REST_MS));
      restMs = 0;
    }
    const askedAt = elapsed();
    const piece = await readPiece(roster, edge);
    restMs += REST * (elapsed() - askedAt);
    if (piece === '') break;
    yield `,${piece}`;
  }
  yield '}}';
}

/** Members of `nodes`; empty at the end. Another roster may have replaced this one meanwhile. */
async function readPiece(roster: number, edge: Edge): Promise<string> {
  const answer = await edge.call('readRoster', roster);
  if (!answer.ok) throw new Error('The roster was closed before it was read to its end');
  return answer.json;
}
