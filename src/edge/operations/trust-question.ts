/** Questions about trust [core-6-3-1], each with its limits. */
import type { FurtherQuestion, TrustQuestion } from '../../protocol/api/graph.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import type { Edge } from '../edge.ts';
import { answerReply, type Reply } from '../reply.ts';
import { limited } from '../request/limited.ts';
import { addressBlock } from '../request/request-head.ts';
import type { RouteRequest } from '../request/route.ts';
import type { EdgeParts } from './operations.ts';

export const trustQuestionParts = {
  trustPath: {
    async answer({ from, to, further }, request, edge) {
      const tooMany = await tooManyPaths(request, edge);
      if (tooMany !== null) return tooMany;
      if (further === null) return answerReply(await edge.call('trustPath', { from, to }));
      const answer = await considered({ from, to, further }, request, edge);
      return 'ok' in answer ? answerReply(answer) : tooManyReply(edge, answer);
    },
  },
} satisfies EdgeParts;

/** Counts a path question; returns the refusal if its source has asked too many. */
export async function tooManyPaths(
  { remoteAddr, now }: RouteRequest,
  edge: Edge,
): Promise<Reply | null> {
  const retryAfter = await edge.limits.take('TRUST_PATH', addressBlock(remoteAddr), now);
  return retryAfter > 0 ? limited(edge, 'TRUST_PATH', retryAfter) : null;
}

/** The seconds until a source that requested too many explanations may ask again. */
export interface TooMany {
  readonly retryAfter: number;
}

export async function considered(
  { from, to, further }: TrustQuestion & { readonly further: FurtherQuestion },
  { remoteAddr, now }: RouteRequest,
  edge: Edge,
): Promise<Answer | TooMany> {
  if (further.explain) {
    const retryAfter = await edge.limits.take('EXPLAIN', addressBlock(remoteAddr), now);
    if (retryAfter > 0) return { retryAfter };
  }
  const answer = await edge.call('considerTrust', { from, to, ...further });
  const isTooBusy = !answer.ok && answer.refusal === 'rate_limit_exceeded';
  return isTooBusy ? { retryAfter: 1 } : answer;
}

export function tooManyReply(edge: Edge, { retryAfter }: TooMany): Reply {
  return limited(edge, 'EXPLAIN', retryAfter);
}
