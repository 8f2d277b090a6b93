/** Parses trust questions from the query of a request [core-6-3-1] and answers them. */
import Type from 'typebox';
import { Refusal } from '../../base/refusal.ts';
import { parseRequestTimestamp } from '../../base/timestamp.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import { MAX_LEFT_OUT, type TrustQuestion } from '../../protocol/contract/inputs.ts';
import type { Edge } from '../edge.ts';
import { limited } from '../limited.ts';
import { firstValue, type Query } from '../query.ts';
import { answerReply, type Reply } from '../reply.ts';
import { addressBlock } from '../request-head.ts';
import type { RouteRequest } from '../route.ts';

const text = (description: string) => Type.Optional(Type.String({ description }));

/** Query parameters of an extended question. */
export const QUESTION_QUERY = {
  without: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: MAX_LEFT_OUT,
      description: 'Id of a treaty that is left out, as if it had ended; may be sent repeatedly',
    }),
  ),
  as_of: text('Earlier time for which to answer, as a timestamp'),
};

export const QUESTION_REFUSALS = ['invalid_without', 'invalid_as_of', 'treaty_not_found'] as const;

/** Null if either sovereign is missing. */
export function endsIn(query: Query): { readonly from: string; readonly to: string } | null {
  const from = firstValue(query, 'from') ?? firstValue(query, 'source');
  const to = firstValue(query, 'to') ?? firstValue(query, 'target');
  return from !== null && to !== null ? { from, to } : null;
}

/** The extended part of the question; null if there is none. */
export function furtherIn(query: Query): Omit<TrustQuestion, 'from' | 'to'> | null {
  const explain = explainIn(query);
  const without = [...new Set(query.without)].filter((id) => id !== '');
  if (without.length > MAX_LEFT_OUT) throw new Refusal('invalid_without');
  const asOf = asOfIn(query);
  return explain || without.length > 0 || asOf !== null ? { explain, without, asOf } : null;
}

function explainIn(query: Query): boolean {
  const value = firstValue(query, 'explain') ?? '0';
  if (value !== '0' && value !== '1') throw new Refusal('invalid_explain');
  return value === '1';
}

function asOfIn(query: Query): number | null {
  const given = firstValue(query, 'as_of');
  if (given === null) return null;
  const instant = parseRequestTimestamp(given);
  if (instant === null) throw new Refusal('invalid_as_of');
  return instant;
}

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
  question: TrustQuestion,
  { remoteAddr, now }: RouteRequest,
  edge: Edge,
): Promise<Answer | TooMany> {
  if (question.explain) {
    const retryAfter = await edge.limits.take('EXPLAIN', addressBlock(remoteAddr), now);
    if (retryAfter > 0) return { retryAfter };
  }
  const answer = await edge.call('considerTrust', question);
  const isTooBusy = !answer.ok && answer.refusal === 'rate_limit_exceeded';
  return isTooBusy ? { retryAfter: 1 } : answer;
}

export async function consideredReply(
  question: TrustQuestion,
  request: RouteRequest,
  edge: Edge,
): Promise<Reply> {
  const answer = await considered(question, request, edge);
  return 'ok' in answer ? answerReply(answer) : tooManyReply(edge, answer);
}

export function tooManyReply(edge: Edge, { retryAfter }: TooMany): Reply {
  return limited(edge, 'EXPLAIN', retryAfter);
}
