/** Recognition treaties: issue, revoke, list [core-4-13]. */
import Type from 'typebox';
import { isJsonObject } from '../../base/json/value.ts';
import { TreatyList, TreatyRevocation } from '../../protocol/answers/recognition.ts';
import {
  RecognitionTreaty,
  readTreatyScope,
  TreatyScope,
} from '../../protocol/records/recognition-treaty.ts';
import { FreeForm } from '../../protocol/records/record.ts';
import { TreatyRow } from '../../protocol/rows/treaty.ts';
import { bodyReader, mapped } from '../body.ts';
import { firstValue } from '../query.ts';
import { answerReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';
import { filter, listReply, openPage, PAGE_QUERY, PAGE_REFUSALS } from './listing.ts';
import { operatorRoute } from './operator-route.ts';
import { reasonBody } from './reason.ts';
import {
  areAllowedRoles,
  FilledText,
  hasItems,
  hours,
  MAX_VALIDITY_HOURS,
  PublicKey,
} from './scalars.ts';

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
  {
    method: 'GET',
    path: '/recognition-treaties',
    call: 'listTreaties',
    limit: 'none',
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
    handle({ query }, edge) {
      const chosen = {
        issuer: firstValue(query, 'issuer_sovereign_id'),
        subject: firstValue(query, 'subject_sovereign_id'),
        status: firstValue(query, 'status'),
      };
      const page = openPage((request) => edge.call('listTreaties', { filter: chosen, ...request }));
      return listReply({ member: 'recognition_treaties', isCounted: true, page }, query);
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
