/** The public documents: served from cached bytes, with a validator for conditional requests. */
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import {
  type DocumentName,
  foreignFeedName,
  ownDocument,
  type PublishedDocument,
} from '../../protocol/contract/documents.ts';
import type { GenesisBlock } from '../../protocol/records/genesis.ts';
import { Refusal, type RefusalName } from '../../protocol/refusals.ts';
import { type Edge, inTurn } from '../edge.ts';
import type { EdgeParts } from '../operations/operations.ts';
import { documentReply, type Reply, refusalReply, staleDocumentReply } from '../reply.ts';
import type { RouteRequest } from '../request/route.ts';
import { deltaReply } from './revocation-list-delta.ts';
import { cachedBySource, oncePerTurn } from './shared-build.ts';

export const documentParts = {
  readGenesis: document('genesis'),
  readSovereign: {
    answer: (_asked, request, edge) =>
      serveDocument('genesis', request, edge, () => {
        const { genesis } = edge.settings.authorityKeys;
        return ownDocument(jsonText(sovereignMetadata(genesis, request.baseUrl)));
      }),
  },
  readPolicy: document('policy'),
  readRevocationList: {
    answer({ since }, request, edge) {
      if (since === null) return serveDocument('crl', request, edge);
      return inTurn(edge, currentDocument('crl', request.now, edge), () =>
        deltaReply(since, request, edge),
      );
    },
  },
  readBulletin: document('bulletin'),
  readAuthorityKeys: document('authority_keys'),
  readRevocationFeed: {
    async answer({ issuer_sovereign_id: issuer }, request, edge) {
      const { network_name: ownName } = edge.settings.genesis;
      if (issuer === null || issuer === ownName) {
        return serveDocument('sovereign_revocation_feed', request, edge);
      }
      const answer = await edge.call('refreshForeignFeed', { issuer });
      if (!answer.ok) return refusalReply(answer.refusal, answer.details);
      const published = edge.documents.latest(foreignFeedName(issuer));
      return documentReply(published ?? ownDocument(answer.json), request);
    },
  },
  readLicensePolicy: {
    async answer(_asked, request, edge) {
      const policy = await currentDocument('data_license_policy', request.now, edge);
      return policy === undefined ? refusalReply('no_policy') : documentReply(policy, request);
    },
  },
  readRecognitionGraph: document('recognition_graph'),
  readConnectome: document('connectome'),
  readAtlas: document('atlas'),
  readDashboard: document('dashboard'),
} satisfies EdgeParts;

function document(name: DocumentName) {
  return {
    answer: (_asked: unknown, request: RouteRequest, edge: Edge) =>
      serveDocument(name, request, edge),
  };
}

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

function serveMade(
  name: DocumentName,
  request: RouteRequest,
  edge: Edge,
  render: (document: PublishedDocument) => PublishedDocument,
): Promise<Reply> {
  const made = madeDocument(name, request.now, edge).catch((cause: unknown) => {
    if (!(cause instanceof Refusal && ELSEWHERE.has(cause.refusal))) throw cause;
    // While the request was held, the writer may have become unknown.
    const found = resolve(name, request.now, edge);
    if (found.is !== 'stale') throw cause;
    return found;
  });
  return Promise.resolve(
    inTurn(edge, made, (found) => {
      if (found === undefined) return refusalReply('service_not_ready');
      if (!('is' in found)) return documentReply(render(found), request);
      return staleDocumentReply(render(found.document), found.since, request);
    }),
  );
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
    assertCurrent(name, await confirmationOf(edge)(), edge);
    const confirmed = heldDocument(name, now, edge);
    if (confirmed !== undefined) return confirmed;
  }
  const renewal = isRenewable(name) ? RENEWALS[name] : 'awaitPublications';
  const answer = await edge.call(renewal, null);
  assertCurrent(name, answer, edge);
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

/** While the state lacks what was shown, nothing else is shown [backup-9]. */
const IN_QUARANTINE: ReadonlySet<DocumentName> = new Set([
  'genesis',
  'crl',
  'sovereign_revocation_feed',
]);

/** Throws if the local copy may lack what was shown: by another instance, or before the state was rolled back. */
function assertCurrent(
  name: DocumentName,
  answer: Answer,
  { instanceStatus, documents }: DocumentSource,
): void {
  if (answer.ok) return;
  const { refusal, details } = answer;
  const isElsewhere = instanceStatus !== null && ELSEWHERE.has(refusal);
  const isKnown = IN_QUARANTINE.has(name) && documents.latest(name) !== undefined;
  if (isElsewhere || (refusal === 'restore_pending' && !isKnown))
    throw new Refusal(refusal, details);
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
