/** The public documents: served from cached bytes, with a validator for conditional requests. */
import Value from 'typebox/value';
import type { JsonObject } from '../../base/json/value.ts';
import { jsonText } from '../../base/json/write.ts';
import { readGenesis, readSovereign } from '../../protocol/api/documents.ts';
import type { Answer } from '../../protocol/contract/calls.ts';
import {
  type DocumentName,
  documentText,
  foreignFeedName,
  ownDocument,
  type PublishedDocument,
} from '../../protocol/contract/documents.ts';
import { GenesisBlock } from '../../protocol/records/genesis.ts';
import { Refusal } from '../../protocol/refusals.ts';
import { type CopyRequest, type Edge, inTurn } from '../edge.ts';
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
function serveDocument(
  name: DocumentName,
  request: RouteRequest,
  edge: Edge,
  render = (document: PublishedDocument) => document,
): Reply | Promise<Reply> {
  return withDocument(name, request, edge, (document) => documentReply(render(document), request));
}

export function withDocument(
  name: DocumentName,
  { now }: RouteRequest,
  edge: Edge,
  next: (document: PublishedDocument) => Reply | Promise<Reply>,
): Reply | Promise<Reply> {
  return inTurn(edge, currentDocument(name, now, edge), (document) =>
    document === undefined ? refusalReply('service_not_ready') : next(document),
  );
}

type DocumentSource = Pick<Edge, 'documents' | 'instanceStatus' | 'call'>;

/**
 * The current document; a promise if the authority must be asked first, undefined if there is none.
 */
export function currentDocument(
  name: DocumentName,
  now: number,
  edge: DocumentSource,
): PublishedDocument | Promise<PublishedDocument | undefined> {
  const document = heldDocument(name, now, edge);
  // If others can become active, one may have done so and have replaced this document.
  const isCurrent = document !== undefined && edge.instanceStatus === null;
  return isCurrent ? document : madeDocument(name, now, edge);
}

/** Undefined if there is none or it has expired. */
function heldDocument(
  name: DocumentName,
  now: number,
  { documents }: DocumentSource,
): PublishedDocument | undefined {
  const held = documents.get(name);
  return held !== undefined && now < held.freshUntil ? held : undefined;
}

/** Confirms that this instance is still active, so that its document is current. Renews one that has expired. */
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
  assertCurrent(name, await edge.call(renewal, null), edge);
  // The newest version at the time of the answer, although it may be outdated by now.
  return edge.documents.latest(name);
}

const confirmationOf = cachedBySource(({ call }: DocumentSource) =>
  oncePerTurn(() => call('awaitPublications', null)),
);

/**
 * Throws if the document may lack what another instance has shown. Without an answer, it may be older than the question,
 * unless nothing has replaced it.
 */
function assertCurrent(name: DocumentName, answer: Answer, { documents }: DocumentSource): void {
  if (answer.ok) return;
  const { refusal, details } = answer;
  const isNewest = refusal !== 'authority_unavailable' && documents.get(name) !== undefined;
  if (!isNewest) throw new Refusal(refusal, details);
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

/** What a standby answers while nobody is active: the signed documents that it has passed on [link-6]. */

/** Null if this request has no last copy, or if an instance may be active. */
export function lastCopyReply(
  { instanceStatus, forwarder }: Pick<Edge, 'instanceStatus' | 'forwarder'>,
  request: CopyRequest,
): Reply | Promise<Reply> | null {
  const { path, method, rawQuery, baseUrl } = request;
  if (instanceStatus?.isVacant() !== true || method !== 'GET' || rawQuery !== '') return null;
  // What was passed on of the metadata contains the URL of a client, which must not be shown to another.
  const copy = forwarder?.copies.get(path === readSovereign.path ? readGenesis.path : path);
  if (copy === undefined) return null;
  const shown = path === copy.path ? copy.document : metadataIn(copy.document, baseUrl);
  // In whole seconds, and never too late.
  const since = Math.floor(copy.since / 1000) * 1000;
  return shown && staleDocumentReply(shown, since, request);
}

function metadataIn(genesis: PublishedDocument, baseUrl: string): PublishedDocument | null {
  const value: unknown = JSON.parse(documentText(genesis));
  if (!Value.Check(GenesisBlock, value)) return null;
  return ownDocument(jsonText(sovereignMetadata(value, baseUrl)));
}
