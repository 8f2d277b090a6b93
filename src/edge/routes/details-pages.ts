/** Pages of single treaties, sovereigns, attestations and capabilities, with URLs that can be shared. */
import Type from 'typebox';
import { REFUSALS } from '../../base/refusal.ts';
import { attestationPage } from '../../pages/attestation.ts';
import { capabilityPage } from '../../pages/capability.ts';
import {
  ATTESTATIONS,
  askPage,
  type Findable,
  SOVEREIGNS,
  TREATIES,
} from '../../pages/details-page.ts';
import type { GraphModel } from '../../pages/graph-model.ts';
import { sovereignPage } from '../../pages/sovereign.ts';
import { treatyPage } from '../../pages/treaty.ts';
import { pageNumber } from '../../pages/treaty-query.ts';
import type { AgentDescriptor } from '../../protocol/records/agent-descriptor.ts';
import type { AttestationRow } from '../../protocol/rows/attestation.ts';
import type { TreatyRow } from '../../protocol/rows/treaty.ts';
import type { Edge } from '../edge.ts';
import { firstValue } from '../query.ts';
import { errorPageReply, htmlReply, type Reply, refusalReply } from '../reply.ts';
import { PUBLIC_PAGE, type RouteEntry, type RouteRequest } from '../route.ts';
import { filter, listedRows, openPage, pageParameter } from './listing.ts';
import {
  dashboardIn,
  keptByEtag,
  networkOf,
  withDocument,
  withGraph,
} from './published-content.ts';

const PAGE = { ...PUBLIC_PAGE, hasErrorPage: true } as const;

export const detailsPageRoutes: readonly RouteEntry[] = [
  {
    ...PAGE,
    path: '/treaty',
    query: Type.Object({ id: filter('Id of the treaty') }),
    summary: 'One treaty with its parties, keys, scope and history, as a page',
    refusals: ['treaty_not_found', 'service_not_ready'],
    handle: answerTreaty,
  },
  {
    ...PAGE,
    path: '/sovereign',
    limit: 'SEARCH',
    query: Type.Object({
      id: filter(
        'Name of the sovereign, this one by default; of a long name `sha256:` and its hex digest',
      ),
      out: pageParameter('the treaties that it issued'),
      in: pageParameter('the treaties that recognize it'),
      revoked: pageParameter('its revoked attestations'),
    }),
    summary: 'One sovereign with its treaties, feed and revocations, as a page',
    refusals: ['not_found', 'service_not_ready'],
    handle: (request, edge) =>
      withGraph(request, edge, (graph) =>
        withDocument('dashboard', request, edge, (dashboard) =>
          answerSovereign(request, edge, graph, feedsOf(edge, dashboard)),
        ),
      ),
  },
  {
    ...PAGE,
    path: '/attestation',
    query: Type.Object({ id: filter('Id of the attestation') }),
    summary: 'One attestation with its subject and history, as a page',
    refusals: ['attestation_not_found'],
    handle: answerAttestation,
  },
  {
    ...PAGE,
    path: '/capability',
    limit: 'SEARCH',
    query: Type.Object({
      name: filter('Tag that must match exactly'),
      cursor: filter('The place from which the next page begins'),
    }),
    summary: 'The agents with a capability, as a page',
    refusals: [],
    handle: answerCapability,
  },
];

async function answerTreaty(request: RouteRequest, edge: Edge): Promise<Reply> {
  const id = given(request, 'id');
  if (id === '') return htmlReply(askPage(TREATIES, networkOf(edge)), request);
  const answer = await edge.call('readTreaty', { treaty_id: id });
  if (!answer.ok) return notFound(request, edge, 'treaty_not_found', TREATIES);
  const row = JSON.parse(answer.json) as TreatyRow;
  return withGraph(request, edge, (graph) => htmlReply(treatyPage(row, graph), request));
}

const feedsOf = keptByEtag((edge, document) => {
  const { revocation_feeds: feeds } = dashboardIn(edge, document);
  return new Map(feeds.map((feed) => [feed.issuer_sovereign_id, feed]));
});

function answerSovereign(
  request: RouteRequest,
  edge: Edge,
  model: GraphModel,
  feeds: ReturnType<typeof feedsOf>,
): Reply | Promise<Reply> {
  const name = given(request, 'id') || model.ownName;
  const node = model.named(name);
  const id = node?.id ?? name;
  const feed = feeds.get(id);
  if (node === undefined && feed === undefined && id !== model.ownName) {
    return notFound(request, edge, 'not_found', SOVEREIGNS);
  }
  const pages = {
    out: pageNumber(given(request, 'out')),
    in: pageNumber(given(request, 'in')),
    revoked: pageNumber(given(request, 'revoked')),
  };
  return htmlReply(sovereignPage({ id, node, feed }, pages, model), request);
}

async function answerAttestation(request: RouteRequest, edge: Edge): Promise<Reply> {
  const id = given(request, 'id');
  if (id === '') return htmlReply(askPage(ATTESTATIONS, networkOf(edge)), request);
  const answer = await edge.call('readAttestation', { attestation_id: id });
  if (!answer.ok) return notFound(request, edge, 'attestation_not_found', ATTESTATIONS);
  const row = JSON.parse(answer.json) as AttestationRow;
  return htmlReply(attestationPage(row, request.now, networkOf(edge)), request);
}

const AGENTS_OF_PAGE = 50;

async function answerCapability(request: RouteRequest, edge: Edge): Promise<Reply> {
  const capability = given(request, 'name');
  if (capability === '') return htmlReply(capabilityPage('', null, networkOf(edge)), request);
  const page = openPage((asked) => edge.call('listAgents', { capability, ...asked }));
  const { rows, cursor } = await listedRows({ page }, request, AGENTS_OF_PAGE);
  const agents = rows as readonly AgentDescriptor[];
  return htmlReply(capabilityPage(capability, { agents, cursor }, networkOf(edge)), request);
}

function given({ query }: RouteRequest, name: string): string {
  return firstValue(query, name) ?? '';
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
