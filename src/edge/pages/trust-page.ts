/** The page that explains why one sovereign trusts another [core-6-3-1]. */

import { counted } from '../../base/counts.ts';
import type { TrustPageQuestion } from '../../pages/trust/form.ts';
import { type TrustPageAnswer, trustPage } from '../../pages/trust/trust.ts';
import { trustPath } from '../../protocol/api/graph.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import { REFUSALS } from '../../protocol/refusals.ts';
import type { ExplainedTrust } from '../../protocol/rows/graph.ts';
import type { Edge } from '../edge.ts';
import { contextOf, type EdgeParts } from '../operations/operations.ts';
import { considered, tooManyReply } from '../operations/trust-question.ts';
import { errorPageReply, htmlReply, type Reply, refusalReply } from '../reply.ts';
import type { RouteRequest } from '../request/route.ts';

export const trustPageParts = {
  showTrust: {
    async answer({ from, to }, request, edge) {
      const asked = { from: from ?? '', to: to ?? '', asOf: '', without: [] };
      if (from === null || to === null) {
        const shown = from ?? edge.settings.genesis.network_name;
        return pageReply(request, edge, { ...asked, from: shown }, null);
      }
      const question = trustPath.read(request, contextOf(request, edge));
      if (!question.ok) return refusedReply(question, request, edge, asked);
      const further = { ...NOTHING_FURTHER, ...question.value.further, explain: true };
      const answer = await considered({ from, to, further }, request, edge);
      if (!('ok' in answer)) {
        const { retryAfter } = answer;
        const problem = `Too many questions: try again in ${counted(retryAfter, 'second')}`;
        return problemReply(request, edge, asked, tooManyReply(edge, answer), problem, retryAfter);
      }
      if (!answer.ok) return refusedReply(answer, request, edge, asked);
      const found = JSON.parse(answer.json) as ExplainedTrust;
      const { as_of, without } = found;
      return pageReply(request, edge, { from, to, asOf: as_of ?? '', without }, found);
    },
  },
} satisfies EdgeParts;

function pageReply(
  request: RouteRequest,
  { settings }: Edge,
  question: TrustPageQuestion,
  answer: TrustPageAnswer,
): Reply | Promise<Reply> {
  return htmlReply(trustPage(question, answer, settings.genesis.network_name), request);
}

const NOTHING_FURTHER = { without: [], asOf: null } as const;

function refusedReply(
  { refusal, details }: Extract<Answer, { readonly ok: false }>,
  request: RouteRequest,
  edge: Edge,
  asked: TrustPageQuestion,
): Reply {
  const { message } = REFUSALS[refusal];
  return problemReply(request, edge, asked, refusalReply(refusal, details), message);
}

/** An error envelope, or for clients that prefer HTML, a page that states the problem. */
function problemReply(
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
