/** The page that explains why one sovereign trusts another [core-6-3-1]. */
import Type from 'typebox';
import { REFUSALS, Refusal } from '../../base/refusal.ts';
import { counted } from '../../pages/counts.ts';
import { type TrustPageAnswer, trustPage } from '../../pages/trust.ts';
import type { TrustPageQuestion } from '../../pages/trust-form.ts';
import type { ExplainedTrust } from '../../protocol/rows/graph.ts';
import type { Edge } from '../edge.ts';
import { firstValue } from '../query.ts';
import { answerReply, errorPageReply, htmlReply, type Reply, refusalReply } from '../reply.ts';
import { PUBLIC_PAGE, type RouteEntry, type RouteRequest } from '../route.ts';
import { filter } from './listing.ts';
import {
  considered,
  endsIn,
  furtherIn,
  QUESTION_QUERY,
  QUESTION_REFUSALS,
  tooManyReply,
} from './trust-question.ts';

export const trustPageRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_PAGE,
    path: '/trust',
    query: Type.Object({
      from: filter('Sovereign that evaluates (also: source)'),
      to: filter('Sovereign that is evaluated (also: target)'),
      ...QUESTION_QUERY,
    }),
    summary: 'Why one sovereign trusts another, as a page',
    description: `The answer of \`GET /connectome/trust-path\` with \`explain=1\` in words. A question counts in the bucket
EXPLAIN, per address.`,
    hasErrorPage: true,
    refusals: [...QUESTION_REFUSALS],
    handle: answerTrustPage,
  },
];

async function answerTrustPage(request: RouteRequest, edge: Edge): Promise<Reply> {
  const asked = questionOf(request);
  const ends = endsIn(request.query);
  if (ends === null) {
    const from = asked.from || edge.settings.genesis.network_name;
    return pageReply(request, edge, { ...asked, from }, null);
  }
  try {
    const further = furtherIn(request.query) ?? NOTHING_FURTHER;
    const answer = await considered({ ...ends, ...further, explain: true }, request, edge);
    if (!('ok' in answer)) {
      const { retryAfter } = answer;
      const problem = `Too many questions: try again in ${counted(retryAfter, 'second')}`;
      return refusedReply(request, edge, asked, tooManyReply(edge, answer), problem, retryAfter);
    }
    if (!answer.ok) {
      const { message } = REFUSALS[answer.refusal];
      return refusedReply(request, edge, asked, answerReply(answer), message);
    }
    const explained = JSON.parse(answer.json) as ExplainedTrust;
    const { as_of, without } = explained;
    return pageReply(request, edge, { ...ends, asOf: as_of ?? '', without }, explained);
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    const { refusal, details } = cause;
    const { message } = REFUSALS[refusal];
    return refusedReply(request, edge, asked, refusalReply(refusal, details), message);
  }
}

const NOTHING_FURTHER = { without: [], asOf: null } as const;

/** The question to prefill in the form, without the refused parts. */
function questionOf({ query }: RouteRequest): TrustPageQuestion {
  const given = (name: string, other: string) =>
    firstValue(query, name) ?? firstValue(query, other) ?? '';
  return { from: given('from', 'source'), to: given('to', 'target'), asOf: '', without: [] };
}

function pageReply(
  request: RouteRequest,
  { settings }: Edge,
  question: TrustPageQuestion,
  answer: TrustPageAnswer,
): Reply | Promise<Reply> {
  return htmlReply(trustPage(question, answer, settings.genesis.network_name), request);
}

/** The refusal: an error envelope, or for clients that prefer HTML, a page that states the problem. */
function refusedReply(
  { wantsErrorPage }: RouteRequest,
  { settings }: Edge,
  asked: TrustPageQuestion,
  refused: Reply,
  problem: string,
  retryAfter: number | null = null,
): Reply {
  if (!wantsErrorPage) return refused;
  const page = trustPage(asked, { problem }, settings.genesis.network_name);
  return errorPageReply(refused.status, page, retryAfter);
}
