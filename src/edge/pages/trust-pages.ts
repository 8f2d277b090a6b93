/**
 * Pages of single treaties, sovereigns, attestations and capabilities, with URLs that can be shared, and the page that
 * explains why one sovereign trusts another [core-6-3-1].
 */
import { counted } from '../../base/counts.ts';
import { parseJson } from '../../base/json/parse.ts';
import type { GraphModel } from '../../pages/graph/model.ts';
import { pageNumber } from '../../pages/graph/tables.ts';
import { attestationPage } from '../../pages/trust/attestation.ts';
import { capabilityPage } from '../../pages/trust/capability.ts';
import {
  ATTESTATIONS,
  askPage,
  type Findable,
  SOVEREIGNS,
  TREATIES,
  type TrustPageQuestion,
} from '../../pages/trust/form.ts';
import { sovereignPage } from '../../pages/trust/sovereign.ts';
import { treatyPage } from '../../pages/trust/treaty.ts';
import { type TrustPageAnswer, trustPage } from '../../pages/trust/trust.ts';
import type { InputOf } from '../../protocol/api/define.ts';
import { trustPath } from '../../protocol/api/graph.ts';
import type { Api } from '../../protocol/api/table.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import { REFUSALS } from '../../protocol/refusals.ts';
import type { ExplainedTrust } from '../../protocol/rows/graph.ts';
import type { AttestationRow, TreatyRow } from '../../protocol/rows/recognition.ts';
import { withDocument } from '../documents/documents.ts';
import { cachedBySource } from '../documents/shared-build.ts';
import type { Edge } from '../edge.ts';
import { listedRows, openPage } from '../operations/listing.ts';
import { contextOf, type EdgeParts } from '../operations/operations.ts';
import { considered, tooManyReply } from '../operations/trust-question.ts';
import { errorPageReply, htmlReply, type Reply, refusalReply } from '../reply.ts';
import type { RouteRequest } from '../request/route.ts';
import { dashboardIn, networkOf, withGraph } from './published-content.ts';

export const trustPageParts = {
  showTreaty: {
    async answer({ id }, request, edge) {
      if (id === null) return htmlReply(askPage(TREATIES, networkOf(edge)), request);
      const answer = await edge.call('readTreaty', { treaty_id: id });
      if (!answer.ok) return notFound(request, edge, 'treaty_not_found', TREATIES);
      const row = parseJson(answer.json) as unknown as TreatyRow;
      return withGraph(request, edge, (graph) =>
        htmlReply(treatyPage(row, graph, edge.settings.authorityKeys), request),
      );
    },
  },
  showSovereign: {
    answer: (asked, request, edge) =>
      withGraph(request, edge, (graph) =>
        withDocument('dashboard', request, edge, (dashboard) =>
          answerSovereign(asked, request, edge, graph, feedsOf(dashboard)),
        ),
      ),
  },
  showAttestation: {
    async answer({ id }, request, edge) {
      if (id === null) return htmlReply(askPage(ATTESTATIONS, networkOf(edge)), request);
      const answer = await edge.call('readAttestation', { attestation_id: id });
      if (!answer.ok) return notFound(request, edge, 'attestation_not_found', ATTESTATIONS);
      const row = parseJson(answer.json) as unknown as AttestationRow;
      const { authorityKeys } = edge.settings;
      const page = attestationPage(
        row,
        { now: request.now, networkName: networkOf(edge) },
        authorityKeys,
      );
      return htmlReply(page, request);
    },
  },
  showCapability: {
    async answer({ name: capability }, request, edge) {
      if (capability === null) {
        return htmlReply(capabilityPage('', null, networkOf(edge)), request);
      }
      const page = openPage((asked) => edge.call('listAgents', { capability, ...asked }));
      const { rows, cursor } = await listedRows({ page }, request, AGENTS_OF_PAGE);
      const agents = rows as readonly AgentDescriptor[];
      return htmlReply(capabilityPage(capability, { agents, cursor }, networkOf(edge)), request);
    },
  },
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

const AGENTS_OF_PAGE = 50;

const feedsOf = cachedBySource((document: PublishedDocument) => {
  const { revocation_feeds: feeds } = dashboardIn(document);
  return new Map(feeds.map((feed) => [feed.issuer_sovereign_id, feed]));
});

function answerSovereign(
  asked: InputOf<Api['showSovereign']>,
  request: RouteRequest,
  edge: Edge,
  model: GraphModel,
  feeds: ReturnType<typeof feedsOf>,
): Reply | Promise<Reply> {
  const name = asked.id ?? model.ownName;
  const node = model.named(name);
  const id = node?.id ?? name;
  const feed = feeds.get(id);
  if (node === undefined && feed === undefined && id !== model.ownName) {
    return notFound(request, edge, 'not_found', SOVEREIGNS);
  }
  const pages = {
    out: pageNumber(asked.out ?? ''),
    in: pageNumber(asked.in ?? ''),
    revoked: pageNumber(asked.revoked ?? ''),
  };
  return htmlReply(sovereignPage({ id, node, feed }, pages, model), request);
}

function notFound(
  { wantsErrorPage }: RouteRequest,
  edge: Edge,
  refusal: 'treaty_not_found' | 'attestation_not_found' | 'not_found',
  what: Findable,
): Reply {
  if (!wantsErrorPage) return refusalReply(refusal);
  return errorPageReply(REFUSALS[refusal].status, askPage(what, networkOf(edge), true));
}

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
