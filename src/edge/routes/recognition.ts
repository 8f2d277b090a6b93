/** The recognition policy and revocation feeds [core-4-12], [core-4-14]. */
import Type from 'typebox';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { isPublicKey } from '../../base/crypto/public-key.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { FeedImported, RecognitionPolicySaved } from '../../protocol/answers/recognition.ts';
import type { Input } from '../../protocol/api/input.ts';
import { refused } from '../../protocol/api/input.ts';
import type { CallOf } from '../../protocol/contract/calls.ts';
import { foreignFeedName, ownDocument } from '../../protocol/contract/documents.ts';
import {
  RecognitionPolicy,
  readRecognitionPolicy,
} from '../../protocol/records/recognition-policy.ts';
import {
  type SovereignRevocationFeed as Feed,
  keyOfFeed,
  readRevocationFeed,
  SovereignRevocationFeed,
} from '../../protocol/records/revocation-feed.ts';
import { keyList } from '../../protocol/records/signature-search.ts';
import { LARGE_BODY_BYTES } from '../../protocol/route-description.ts';
import type { Edge } from '../edge.ts';
import { firstValue } from '../query.ts';
import { answerReply, documentReply, refusalReply } from '../reply.ts';
import { operatorOf, PUBLIC_DOCUMENT, type RouteEntry } from '../route.ts';
import { serveDocument } from './documents.ts';
import { operatorRoute } from './operator-route.ts';
import { KeysOfAnyForm, optional } from './trust-requests.ts';

const MAX_POLICY_ID_LENGTH = 256;

export const recognitionRoutes: readonly RouteEntry[] = [
  operatorRoute({
    method: 'POST',
    path: '/admin/recognition-policy',
    call: 'setRecognitionPolicy',
    limit: 'ADMIN',
    summary: 'Set the acceptance policy',
    description: 'A body that is itself a policy, without the wrapper, is taken too.',
    body: Type.Object({
      recognition_policy: RecognitionPolicy,
      policy_id: optional(Type.String({ maxLength: MAX_POLICY_ID_LENGTH })),
    }),
    answer: RecognitionPolicySaved,
    refusals: [
      'missing_recognition_policy',
      'invalid_recognition_policy',
      'invalid_keys_of_others',
      'private_key_given',
    ],
    input: (request) => policyInput(request.body),
  }),
  {
    method: 'GET',
    path: '/recognition-policy',
    call: 'readRecognitionPolicy',
    limit: 'none',
    summary: 'Current acceptance policy',
    answer: RecognitionPolicy,
    refusals: ['recognition_policy_not_configured'],
    handle: async (_request, edge) => answerReply(await edge.call('readRecognitionPolicy', null)),
  },
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
  operatorRoute({
    method: 'POST',
    path: '/admin/sovereign-revocation-feeds/import',
    call: 'importFeed',
    limit: 'ADMIN',
    maxBodyBytes: LARGE_BODY_BYTES,
    summary: "Import another sovereign's revocation feed",
    description:
      'Without issuer_public_keys the subject keys of active treaties with the issuer are used.',
    body: Type.Object({
      feed: SovereignRevocationFeed,
      issuer_public_keys: KeysOfAnyForm,
      expected_issuer_sovereign_id: optional(Type.String()),
    }),
    exampleNeeds: {
      what: 'a feed that its issuer signed, with a key of the issuer',
      otherwise: 'invalid_feed_signature',
    },
    answer: FeedImported,
    refusals: [
      'invalid_sovereign_revocation_feed',
      'private_key_given',
      'missing_issuer_public_keys',
      'wrong_issuer',
      'missing_feed_signature',
      'invalid_feed_signature',
      'stale_sequence',
    ],
    async input(request, edge) {
      // The feed is not read if its sender will not be admitted.
      return operatorOf(request).verdict === 'valid'
        ? await feedInput(request.body, edge)
        : refused(MALFORMED);
    },
  }),
];

function policyInput(body: JsonObject): CallOf<'setRecognitionPolicy'>['input'] {
  const wrapped = body.recognition_policy ?? null;
  const given = wrapped === null && 'local_sovereign_id' in body ? body : wrapped;
  if (given === null) return refused('missing_recognition_policy');
  const policy = readRecognitionPolicy(given);
  if (policy === null) return refused('invalid_recognition_policy');
  const keys = policy.recognized_issuers.flatMap(({ public_keys }) => public_keys);
  if (!keys.every(isPublicKey)) return refused('invalid_keys_of_others');
  const { policy_id: policyId = null } = body;
  if (policyId === null || policyId === '') return { ok: true, value: { policy, policyId: null } };
  if (typeof policyId !== 'string' || policyId.length > MAX_POLICY_ID_LENGTH) {
    return wrongType('policy_id', `must be a string of at most ${MAX_POLICY_ID_LENGTH}`);
  }
  return { ok: true, value: { policy, policyId } };
}

const MALFORMED = 'invalid_sovereign_revocation_feed';

async function feedInput(body: JsonObject, edge: Edge): Promise<CallOf<'importFeed'>['input']> {
  if (entriesOf(body.feed) > edge.settings.maxFeedEntries) return refused(MALFORMED);
  const feed = readRevocationFeed(body.feed);
  if (feed === null) return refused(MALFORMED);
  const expected: JsonValue = body.expected_issuer_sovereign_id ?? null;
  if (expected !== null && typeof expected !== 'string') {
    return wrongType('expected_issuer_sovereign_id', 'must be a string');
  }
  const { feed_id: feedId, issuer_sovereign_id: issuer, sequence } = feed;
  const given = body.issuer_public_keys ?? null;
  // A wrong type counts as an empty list, which the authority refuses.
  const issuerKeys = given === null ? null : [...(keyList(given) ?? []).values()];
  const keys = issuerKeys ?? (await treatyKeysFor(issuer, edge));
  return {
    ok: true,
    value: {
      feedId,
      issuer,
      sequence,
      revokedCount: feed.revoked_attestation_ids.length,
      rows: importRows(feed),
      isSigned: feed.signatures.length > 0,
      verifiedUnder: keyOfFeed(feed, keys, verifySignature),
      issuerKeys,
      expectedIssuer: expected,
    },
  };
}

/** The number of ids in a feed, including duplicates. */
function entriesOf(feed: JsonValue | undefined): number {
  const ids = isJsonObject(feed) ? feed.revoked_attestation_ids : null;
  return Array.isArray(ids) ? ids.length : 0;
}

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

function wrongType(field: string, msg: string): Input<never> {
  const errors = [{ loc: ['body', field], msg, type: 'type' }];
  return refused('request_validation_failed', { errors });
}
