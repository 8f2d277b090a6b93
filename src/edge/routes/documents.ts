/** The public documents: served from cached bytes, with a validator for conditional requests. */
import Type from 'typebox';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { Refusal, type RefusalName } from '../../base/refusal.ts';
import { SovereignDocument } from '../../protocol/answers/documents.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import {
  type DocumentName,
  ownDocument,
  type PublishedDocument,
} from '../../protocol/contract/documents.ts';
import { Bulletin } from '../../protocol/records/bulletin.ts';
import { GenesisBlock } from '../../protocol/records/genesis.ts';
import { PolicyManifest } from '../../protocol/records/policy-manifest.ts';
import { CertificateRevocationList } from '../../protocol/records/revocation-list.ts';
import { RevocationListDelta } from '../../protocol/records/revocation-list-delta.ts';
import { type Edge, withAnswer } from '../edge.ts';
import { firstValue } from '../query.ts';
import { documentReply, type Reply, refusalReply, staleDocumentReply } from '../reply.ts';
import { PUBLIC_DOCUMENT, type RouteEntry, type RouteRequest } from '../route.ts';
import { deltaReply, heldSequence } from './revocation-list-delta.ts';
import { cachedBySource, oncePerTurn } from './shared-build.ts';

export const documentRoutes: readonly RouteEntry[] = [
  {
    ...PUBLIC_DOCUMENT,
    path: '/genesis',
    hasLastCopy: true,
    summary: 'Active signed genesis block',
    answer: GenesisBlock,
    refusals: [],
    handle: (request, edge) => serveDocument('genesis', request, edge),
  },
  {
    ...PUBLIC_DOCUMENT,
    path: '/sovereign.json',
    usesBaseUrl: true,
    hasLastCopy: true,
    summary: 'Public metadata of the sovereign',
    answer: SovereignDocument,
    refusals: [],
    handle: (request, edge) =>
      serveDocument('genesis', request, edge, () => {
        const { genesis } = edge.settings.authorityKeys;
        return ownDocument(jsonText(sovereignMetadata(genesis, request.baseUrl)));
      }),
  },
  {
    ...PUBLIC_DOCUMENT,
    path: '/policy',
    hasLastCopy: true,
    summary: 'Active signed policy manifest',
    answer: PolicyManifest,
    refusals: [],
    handle: (request, edge) => serveDocument('policy', request, edge),
  },
  {
    ...PUBLIC_DOCUMENT,
    path: '/crl',
    hasLastCopy: true,
    query: Type.Object({
      since: Type.Optional(
        Type.String({
          description: 'Only what the list gained since its version of this sequence',
        }),
      ),
    }),
    summary: 'Active signed certificate revocation list, or what it gained since a version',
    answer: Type.Union([CertificateRevocationList, RevocationListDelta]),
    refusals: ['invalid_since', 'since_ahead', 'delta_unavailable'],
    handle(request, edge) {
      const since = firstValue(request.query, 'since');
      if (since === null) return serveDocument('crl', request, edge);
      const held = heldSequence(since);
      return withAnswer(currentDocument('crl', request.now, edge), () =>
        deltaReply(held, request, edge),
      );
    },
  },
  {
    ...PUBLIC_DOCUMENT,
    path: '/bulletin',
    summary: 'What is newest here, signed: revocation list, policy, genesis, audit log',
    answer: Bulletin,
    refusals: [],
    handle: (request, edge) => serveDocument('bulletin', request, edge),
  },
];

/** The other documents are published at startup and with every change. */
function isRenewable(name: DocumentName): name is keyof typeof RENEWALS {
  return name in RENEWALS;
}

/** The calls that produce a current document if the edge has none or an outdated one. */
const RENEWALS = {
  policy: 'ensurePolicy',
  crl: 'refreshCrl',
  bulletin: 'refreshBulletin',
  sovereign_revocation_feed: 'refreshFeed',
  recognition_graph: 'refreshGraph',
  connectome: 'refreshGraph',
  atlas: 'refreshGraph',
  dashboard: 'refreshDashboard',
} as const;

/** Serves a public document from its cached bytes, or what is rendered from it. */
export function serveDocument(
  name: DocumentName,
  request: RouteRequest,
  edge: Edge,
  render = (document: PublishedDocument) => document,
): Reply | Promise<Reply> {
  const found = resolve(name, request.now, edge);
  switch (found.is) {
    case 'current':
      return documentReply(render(found.document), request);
    case 'stale':
      return staleDocumentReply(render(found.document), found.since, request);
    case 'to be made':
      return serveMade(name, request, edge, render);
  }
}

async function serveMade(
  name: DocumentName,
  request: RouteRequest,
  edge: Edge,
  render: (document: PublishedDocument) => PublishedDocument,
): Promise<Reply> {
  try {
    const document = await madeDocument(name, request.now, edge);
    return document === undefined
      ? refusalReply('service_not_ready')
      : await documentReply(render(document), request);
  } catch (cause) {
    if (!(cause instanceof Refusal && ELSEWHERE.has(cause.refusal))) throw cause;
    // While the request was held, the writer may have become unknown.
    const found = resolve(name, request.now, edge);
    if (found.is !== 'stale') throw cause;
    return staleDocumentReply(render(found.document), found.since, request);
  }
}

type DocumentSource = Pick<Edge, 'documents' | 'instanceStatus' | 'call'>;

/**
 * The current document, never a stale copy; a promise if the authority must be asked first, undefined if there is
 * none.
 */
export function currentDocument(
  name: DocumentName,
  now: number,
  edge: DocumentSource,
): PublishedDocument | Promise<PublishedDocument | undefined> {
  const found = resolve(name, now, edge);
  return found.is === 'current' ? found.document : madeDocument(name, now, edge);
}

/** The status of this edge's copy of a public document. */
type Resolved =
  | { readonly is: 'current'; readonly document: PublishedDocument }
  /** The last copy of a signed document, served while no writer is known [link-6]. */
  | { readonly is: 'stale'; readonly document: PublishedDocument; readonly since: number }
  /** No copy is known to be current, so the authority must be asked. */
  | { readonly is: 'to be made' };

const TO_BE_MADE = { is: 'to be made' } as const;

function resolve(name: DocumentName, now: number, edge: DocumentSource): Resolved {
  const { documents, instanceStatus } = edge;
  const since = instanceStatus?.staleSince() ?? null;
  if (since !== null && LAST_COPIES.has(name)) {
    const copy = documents.get(name);
    if (copy !== undefined) return { is: 'stale', document: copy, since };
  }
  const document = heldDocument(name, now, edge);
  // If others can write, a local copy may have been replaced.
  const isCurrent = document !== undefined && instanceStatus === null;
  return isCurrent ? { is: 'current', document } : TO_BE_MADE;
}

/** The documents that are signed and state their own validity. */
const LAST_COPIES: ReadonlySet<DocumentName> = new Set([
  'genesis',
  'policy',
  'crl',
  'sovereign_revocation_feed',
]);

/** Undefined if there is none or it has expired. */
function heldDocument(
  name: DocumentName,
  now: number,
  { documents }: DocumentSource,
): PublishedDocument | undefined {
  const held = documents.get(name);
  return held !== undefined && now < held.freshUntil ? held : undefined;
}

/**
 * Confirms that the local copy is current, because documents replaced by another instance arrive before the confirming
 * answer. Renews a copy that has expired.
 */
async function madeDocument(
  name: DocumentName,
  now: number,
  edge: DocumentSource,
): Promise<PublishedDocument | undefined> {
  if (heldDocument(name, now, edge) !== undefined) {
    assertNotElsewhere(await confirmationOf(edge)(), edge);
    const confirmed = heldDocument(name, now, edge);
    if (confirmed !== undefined) return confirmed;
  }
  const renewal = isRenewable(name) ? RENEWALS[name] : 'awaitPublications';
  const answer = await edge.call(renewal, null);
  assertNotElsewhere(answer, edge);
  // Without an answer, the last copy may be older than the question, unless nothing has replaced it. Nothing has while
  // the state lacks what was shown: then the list that was shown is the newest there is.
  const isNewest = edge.documents.get(name) !== undefined;
  if (!answer.ok && !isNewest && answer.refusal !== 'restore_pending') {
    throw new Refusal(answer.refusal, answer.details);
  }
  // The newest version at the time of the answer, although it may be outdated by now.
  return edge.documents.latest(name);
}

const confirmationOf = cachedBySource(({ call }: DocumentSource) =>
  oncePerTurn(() => call('awaitPublications', null)),
);

/** Another instance is the writer, or is about to be. */
const ELSEWHERE: ReadonlySet<RefusalName> = new Set(['authority_unavailable', 'shutting_down']);

/** Throws if another instance may have published newer documents than the local ones. */
function assertNotElsewhere(answer: Answer, { instanceStatus }: DocumentSource): void {
  if (!answer.ok && instanceStatus !== null && ELSEWHERE.has(answer.refusal)) {
    throw new Refusal(answer.refusal, answer.details);
  }
}

/** Public metadata of the sovereign [service-sovereign-metadata], [core-5-13]: no key but public ones. */
function sovereignMetadata(genesis: GenesisBlock, baseUrl: string): JsonObject {
  return {
    sovereign_id: genesis.network_name,
    network_name: genesis.network_name,
    network_version: genesis.network_version,
    endpoint: baseUrl,
    network_authority: genesis.network_authority,
    root_public_key: genesis.root_public_key,
    supported_surfaces: {
      genesis: `${baseUrl}/genesis`,
      recognition_treaties: `${baseUrl}/recognition-treaties`,
      sovereign_revocation_feed: `${baseUrl}/sovereign-revocation-feed`,
      recognition_graph: `${baseUrl}/recognition-graph`,
      connectome: `${baseUrl}/connectome.json`,
      atlas: `${baseUrl}/atlas.json`,
      swagger: `${baseUrl}/swagger.json`,
      api_reference: `${baseUrl}/api-reference`,
      cli_reference: `${baseUrl}/cli-reference`,
    },
    policy_manifest: genesis.policy_manifest,
    bootstrap_anchor_count: genesis.bootstrap_anchors.length,
  };
}
