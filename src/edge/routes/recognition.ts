/** The recognition policy and revocation feeds [core-4-12], [core-4-14]. */
import Type from 'typebox';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import * as operations from '../../protocol/api/recognition.ts';
import { foreignFeedName, ownDocument } from '../../protocol/contract/documents.ts';
import {
  type SovereignRevocationFeed as Feed,
  keyOfFeed,
  SovereignRevocationFeed,
} from '../../protocol/records/revocation-feed.ts';
import type { Edge } from '../edge.ts';
import { firstValue } from '../query.ts';
import { documentReply, refusalReply } from '../reply.ts';
import { PUBLIC_DOCUMENT, type RouteEntry } from '../route.ts';
import { serveDocument } from './documents.ts';
import { operationRoutes, type Preparation } from './operations.ts';

const { importFeed, ...ofPolicy } = operations;

/** The search for a signature may take many checks. */
const verifiedFeed: Preparation<'importFeed'> = async ({ feed, ...sent }, _request, edge) => {
  const { feed_id: feedId, issuer_sovereign_id: issuer, sequence } = feed;
  const keys = sent.issuer_public_keys ?? (await treatyKeysFor(issuer, edge));
  return {
    ok: true,
    value: {
      ...sent,
      feedId,
      issuer,
      sequence,
      revokedCount: feed.revoked_attestation_ids.length,
      rows: importRows(feed),
      isSigned: feed.signatures.length > 0,
      verifiedUnder: keyOfFeed(feed, keys, verifySignature),
    },
  };
};

export const recognitionRoutes: readonly RouteEntry[] = [
  ...operationRoutes(ofPolicy),
  {
    ...PUBLIC_DOCUMENT,
    path: '/sovereign-revocation-feed',
    query: Type.Object({
      issuer_sovereign_id: Type.Optional(
        Type.String({ description: 'Issuer of the attestations; this sovereign when absent' }),
      ),
    }),
    hasLastCopy: true,
    summary: 'Signed feed of the attestations revoked here',
    answer: SovereignRevocationFeed,
    refusals: ['feed_issuer_mismatch'],
    async handle(request, edge) {
      const { network_name: ownName } = edge.settings.genesis;
      const issuer = firstValue(request.query, 'issuer_sovereign_id') ?? ownName;
      if (issuer === ownName) return serveDocument('sovereign_revocation_feed', request, edge);
      const answer = await edge.call('refreshForeignFeed', { issuer });
      if (!answer.ok) return refusalReply(answer.refusal, answer.details);
      const published = edge.documents.latest(foreignFeedName(issuer));
      return documentReply(published ?? ownDocument(answer.json), request);
    },
  },
  ...operationRoutes({ importFeed }, { importFeed: verifiedFeed }),
];

async function treatyKeysFor(issuer: string, edge: Edge): Promise<readonly string[]> {
  const answer = await edge.call('treatyKeys', { issuer });
  return answer.ok ? (JSON.parse(answer.json) as string[]) : [];
}

/** Rows per slice for the authority. */
const ROWS_PER_SLICE = 2000;

/** The revoked ids with their reasons, in slices. */
export function importRows({
  revoked_attestation_ids: ids,
  revocation_reasons: reasons,
}: Pick<Feed, 'revoked_attestation_ids' | 'revocation_reasons'>): string[] {
  const slices: string[] = [];
  for (let start = 0; start < ids.length; start += ROWS_PER_SLICE) {
    const slice = ids.slice(start, start + ROWS_PER_SLICE);
    // An id may be any text, including the names of inherited members.
    const rows = slice.map((id) => [id, Object.hasOwn(reasons, id) ? reasons[id] : null]);
    slices.push(JSON.stringify(rows));
  }
  return slices;
}
