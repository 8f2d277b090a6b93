/** Pages of single treaties, sovereigns, attestations and capabilities, with URLs that can be shared. */

import type { GraphModel } from '../../pages/graph/model.ts';
import { pageNumber } from '../../pages/graph/treaty-query.ts';
import {
  ATTESTATIONS,
  askPage,
  type Findable,
  SOVEREIGNS,
  TREATIES,
} from '../../pages/trust/ask-page.ts';
import { attestationPage } from '../../pages/trust/attestation.ts';
import { capabilityPage } from '../../pages/trust/capability.ts';
import { sovereignPage } from '../../pages/trust/sovereign.ts';
import { treatyPage } from '../../pages/trust/treaty.ts';
import type { InputOf } from '../../protocol/api/define.ts';
import type { Api } from '../../protocol/api/table.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import { REFUSALS } from '../../protocol/refusals.ts';
import type { AttestationRow, TreatyRow } from '../../protocol/rows/recognition.ts';
import type { Edge } from '../edge.ts';
import { listedRows, openPage } from '../operations/listing.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { errorPageReply, htmlReply, type Reply, refusalReply } from '../reply.ts';
import type { RouteRequest } from '../request/route.ts';
import {
  dashboardIn,
  keptByEtag,
  networkOf,
  withDocument,
  withGraph,
} from './published-content.ts';

export const detailsPageParts = {
  showTreaty: {
    async answer({ id }, request, edge) {
      if (id === null) return htmlReply(askPage(TREATIES, networkOf(edge)), request);
      const answer = await edge.call('readTreaty', { treaty_id: id });
      if (!answer.ok) return notFound(request, edge, 'treaty_not_found', TREATIES);
      const row = JSON.parse(answer.json) as TreatyRow;
      return withGraph(request, edge, (graph) =>
        htmlReply(treatyPage(row, graph, edge.settings.authorityKeys), request),
      );
    },
  },
  showSovereign: {
    answer: (asked, request, edge) =>
      withGraph(request, edge, (graph) =>
        withDocument('dashboard', request, edge, (dashboard) =>
          answerSovereign(asked, request, edge, graph, feedsOf(edge, dashboard)),
        ),
      ),
  },
  showAttestation: {
    async answer({ id }, request, edge) {
      if (id === null) return htmlReply(askPage(ATTESTATIONS, networkOf(edge)), request);
      const answer = await edge.call('readAttestation', { attestation_id: id });
      if (!answer.ok) return notFound(request, edge, 'attestation_not_found', ATTESTATIONS);
      const row = JSON.parse(answer.json) as AttestationRow;
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
} satisfies EdgeParts;

const AGENTS_OF_PAGE = 50;

const feedsOf = keptByEtag((edge, document) => {
  const { revocation_feeds: feeds } = dashboardIn(edge, document);
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
