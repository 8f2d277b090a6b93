/** Recognition treaties: issue, revoke, follow, list [core-4-13]. */
import Type, { type Static } from 'typebox';
import { SHA256 } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { TreatyList, TreatyRevocation } from '../../protocol/answers/recognition.ts';
import { mapped, refused } from '../../protocol/api/input.ts';
import {
  areAllowedRoles,
  FilledText,
  hasItems,
  hours,
  MAX_VALIDITY_HOURS,
  PublicKey,
} from '../../protocol/api/scalars.ts';
import type { CallOf } from '../../protocol/contract/calls.ts';
import { AuthorityKeys, NO_CHAIN, receivedChain } from '../../protocol/records/authority-chain.ts';
import {
  RecognitionTreaty,
  readTreatyScope,
  TreatyScope,
} from '../../protocol/records/recognition-treaty.ts';
import { FreeForm } from '../../protocol/records/record.ts';
import { followForTreaty, type TreatyPin } from '../../protocol/records/treaty-chain.ts';
import { LARGE_BODY_BYTES } from '../../protocol/route-description.ts';
import { TreatyRow } from '../../protocol/rows/treaty.ts';
import { bodyReader } from '../body.ts';
import type { Edge } from '../edge.ts';
import { firstValue } from '../query.ts';
import { answerReply } from '../reply.ts';
import { operatorOf, type RouteEntry } from '../route.ts';
import { filter, listReply, openPage, PAGE_QUERY, PAGE_REFUSALS } from './listing.ts';
import { operatorRoute, reasonBody } from './operator-route.ts';

/** Any object that reads as a scope; absent members get their defaults. */
const ScopeInput = Type.Refine(
  Type.Unsafe<Partial<TreatyScope>>({
    type: 'object',
    additionalProperties: true,
    described: TreatyScope,
  }),
  (scope) => readTreatyScope(scope) !== null,
);

const issueBody = bodyReader(
  Type.Object({
    subject_sovereign_id: FilledText,
    subject_public_keys: Type.Array(PublicKey, { minItems: 1 }),
    scope: Type.Optional(ScopeInput),
    validity_hours: Type.Optional(hours(MAX_VALIDITY_HOURS)),
    metadata: Type.Optional(FreeForm),
    issuer_sovereign_id: Type.Optional(FilledText),
  }),
  {
    codes: {
      subject_sovereign_id: 'missing_treaty_subject',
      any_keys: 'empty_subject_public_keys',
      key_texts: 'missing_treaty_subject',
      subject_public_keys: 'invalid_keys_of_others',
      scope: 'invalid_treaty_scope',
      allowed_roles: 'invalid_role',
      validity_hours: 'invalid_validity_hours',
    },
    tests: {
      any_keys: ({ subject_public_keys: keys }) => hasItems(keys),
      key_texts: ({ subject_public_keys: keys }) =>
        Array.isArray(keys) && keys.every((key) => typeof key === 'string'),
      allowed_roles: ({ scope }, isAllowed) =>
        !isJsonObject(scope) || areAllowedRoles(scope.allowed_roles, isAllowed),
    },
    wholeNumbers: ['validity_hours'],
  },
);

/** The statements are read one by one later, because the reason for refusing a chain names one of them. */
const ChainInput = Type.Refine(
  Type.Unsafe<JsonObject>({
    type: 'object',
    additionalProperties: true,
    described: AuthorityKeys,
  }),
  (document) => receivedChain(document) !== null,
);

const followBody = bodyReader(
  Type.Object({ authority_keys: ChainInput, root_public_key: Type.Optional(PublicKey) }),
  { codes: { authority_keys: 'invalid_authority_keys' } },
);

const NEEDS_ID = {
  what: 'the id of a treaty issued here',
  otherwise: 'treaty_not_found',
} as const;

export const treatyRoutes: readonly RouteEntry[] = [
  operatorRoute({
    method: 'POST',
    path: '/admin/recognition-treaties',
    call: 'issueTreaty',
    limit: 'ADMIN',
    created: 'as_configured',
    summary: 'Recognize another sovereign by treaty',
    body: issueBody.schema,
    answer: RecognitionTreaty,
    refusals: [
      'missing_treaty_subject',
      'empty_subject_public_keys',
      'invalid_keys_of_others',
      'invalid_treaty_scope',
      'invalid_role',
      'invalid_validity_hours',
      'private_key_given',
      'wrong_issuer',
    ],
    input(request, edge) {
      const read = issueBody.read(request.body, edge.settings.isAllowedRole);
      return mapped(read, (body) => ({
        subject: body.subject_sovereign_id,
        subjectKeys: body.subject_public_keys,
        scope: scopeOf(body.scope ?? {}),
        validityHours: body.validity_hours ?? 168,
        metadata: body.metadata ?? {},
        issuer: body.issuer_sovereign_id ?? null,
      }));
    },
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/recognition-treaties/{treaty_id}/revoke',
    call: 'revokeTreaty',
    limit: 'ADMIN',
    summary: 'End a treaty; a reason renewed_by:<id> or replaced_by:<id> names its successor',
    body: reasonBody.schema,
    exampleNeeds: NEEDS_ID,
    answer: TreatyRevocation,
    refusals: ['treaty_not_found'],
    input(request) {
      const treatyId = request.params.treaty_id ?? '';
      return mapped(reasonBody.read(request.body), ({ reason }) => ({ treatyId, reason }));
    },
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/recognition-treaties/{treaty_id}/follow',
    call: 'followTreaty',
    limit: 'ADMIN',
    maxBodyBytes: LARGE_BODY_BYTES,
    summary: 'Replace a treaty after its subject has replaced its authority key',
    description: `Send what GET /authority-keys of the subject answers. Its statements are followed from the keys that the
treaty names. After a theft only the root key of the subject vouches for the new key, so the treaty or the request must
name it.`,
    body: followBody.schema,
    exampleNeeds: NEEDS_ID,
    answer: RecognitionTreaty,
    refusals: [
      'invalid_authority_keys',
      'private_key_given',
      'treaty_not_found',
      'wrong_issuer',
      'treaty_revoked',
      'treaty_expired',
      'chain_rejected',
      'nothing_to_follow',
    ],
    async input(request, edge) {
      // The chain is not followed if its sender will not be admitted.
      if (operatorOf(request).verdict !== 'valid') {
        return refused('invalid_authority_keys');
      }
      const read = followBody.read(request.body);
      return read.ok
        ? followInput(request.params.treaty_id ?? '', read.value, request.now, edge)
        : read;
    },
  }),
  {
    method: 'GET',
    path: '/recognition-treaties',
    call: 'listTreaties',
    limit: 'SEARCH',
    query: Type.Object({
      issuer_sovereign_id: filter('Only of this issuer'),
      subject_sovereign_id: filter('Only with this subject'),
      status: Type.Optional(
        Type.Enum(['active', 'revoked'], { description: 'Only with this status' }),
      ),
      ...PAGE_QUERY,
    }),
    summary: 'Persisted treaties with their lifecycle, oldest first',
    answer: TreatyList,
    refusals: PAGE_REFUSALS,
    handle(request, edge) {
      const { query } = request;
      const chosen = {
        issuer: firstValue(query, 'issuer_sovereign_id'),
        subject: firstValue(query, 'subject_sovereign_id'),
        status: firstValue(query, 'status'),
      };
      const page = openPage((asked) => edge.call('listTreaties', { filter: chosen, ...asked }));
      return listReply({ member: 'recognition_treaties', isCounted: true, page }, request);
    },
  },
  {
    method: 'GET',
    path: '/recognition-treaties/{treaty_id}',
    call: 'readTreaty',
    limit: 'none',
    summary: 'One treaty with its lifecycle',
    answer: TreatyRow,
    exampleNeeds: NEEDS_ID,
    refusals: ['treaty_not_found'],
    handle: async ({ params }, edge) =>
      answerReply(await edge.call('readTreaty', { treatyId: params.treaty_id ?? '' })),
  },
];

function scopeOf(given: Partial<TreatyScope>): TreatyScope {
  const scope = readTreatyScope(given);
  if (scope === null) throw new Error('A scope passed its schema but cannot be read');
  return scope;
}

async function followInput(
  treatyId: string,
  { authority_keys, root_public_key }: Static<typeof followBody.schema>,
  now: number,
  edge: Edge,
): Promise<CallOf<'followTreaty'>['input']> {
  const asked = await edge.call('treatyPin', { treatyId });
  if (!asked.ok) return asked;
  const pin: TreatyPin = JSON.parse(asked.json);
  const rootKey = root_public_key ?? null;
  const received = receivedChain(authority_keys) ?? NO_CHAIN;
  const tools = { verify: verifySignature, sha256: SHA256 };
  const verdict = followForTreaty(pin, rootKey, received, now, tools);
  if (verdict.refusal !== null) {
    const { refusal } = verdict;
    return { ok: true, value: { treatyId, rootKey, refusal, inForce: [], nextAt: null } };
  }
  const { successions, inForce } = verdict;
  const nextAt = successions[inForce.length]?.activates_at ?? null;
  return { ok: true, value: { treatyId, rootKey, refusal: null, inForce, nextAt } };
}
