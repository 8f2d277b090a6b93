/** Recognition treaties: issue, revoke, follow and read them [core-4-13]. */
import Type from 'typebox';
import { areTexts, isJsonObject, type JsonObject } from '../../base/json/value.ts';
import { TreatyEndpoint, TreatyList, TreatyRevocation } from '../answers/recognition.ts';
import { AuthorityKeys, receivedChain } from '../records/authority-chain.ts';
import { RecognitionTreaty, readTreatyScope, TreatyScope } from '../records/recognition.ts';
import { FreeForm } from '../records/record.ts';
import { LARGE_BODY_BYTES } from '../route-description.ts';
import { TreatyRow, TreatyStatus } from '../rows/recognition.ts';
import { privilegedCommand, publicList, publicQuery } from './define.ts';
import {
  allowedRoles,
  FilledText,
  hours,
  MAX_VALIDITY_HOURS,
  optional,
  PublicKey,
  required,
  someItems,
  Text,
} from './members.ts';
import { text, word } from './parameters.ts';

/** Any object that reads as a scope; absent members get their defaults. */
const ScopeInput = Type.Refine(
  Type.Unsafe<Partial<TreatyScope>>({
    type: 'object',
    additionalProperties: true,
    described: TreatyScope,
  }),
  (scope) => readTreatyScope(scope) !== null,
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

const MAX_ENDPOINT_LENGTH = 2048;

/** A parser of URLs drops blanks, and takes a sign at the end for an empty query: paths are added to what was sent. */
const ENDPOINT = /^https?:\/\/[^\s\p{Cc}\\?#]+$/iu;

/** The base URL of an authority. Whether its address may be used is judged when it is. */
const Endpoint = Type.Refine(
  Type.String({ maxLength: MAX_ENDPOINT_LENGTH, description: 'Base URL of the authority' }),
  (text) => {
    if (!ENDPOINT.test(text) || !URL.canParse(text)) return false;
    const { username, password } = new URL(text);
    return `${username}${password}` === '';
  },
);

const NEEDS_ID = {
  what: 'the id of a treaty issued here',
  otherwise: 'treaty_not_found',
} as const;

export const issueTreaty = privilegedCommand('POST /admin/recognition-treaties', {
  created: 'as_configured',
  summary: 'Recognize another sovereign by treaty',
  body: {
    subject_sovereign_id: required(FilledText, 'missing_treaty_subject'),
    subject_public_keys: required(
      Type.Array(PublicKey, { minItems: 1 }),
      'invalid_keys_of_others',
      {
        before: [
          someItems('empty_subject_public_keys', (body) => body.subject_public_keys),
          {
            refusal: 'missing_treaty_subject',
            passes: ({ subject_public_keys: keys }) => Array.isArray(keys) && areTexts(keys),
          },
        ],
      },
    ),
    scope: optional(ScopeInput, {}, 'invalid_treaty_scope', {
      after: [allowedRoles(({ scope }) => (isJsonObject(scope) ? scope.allowed_roles : undefined))],
    }),
    validity_hours: optional(hours(MAX_VALIDITY_HOURS), 168, 'invalid_validity_hours', {
      isLenient: true,
    }),
    metadata: optional(FreeForm, {}),
    issuer_sovereign_id: optional(FilledText, null),
    endpoint: optional(Endpoint, null, 'invalid_endpoint'),
  },
  answer: RecognitionTreaty,
  refusals: ['private_key_given', 'wrong_issuer'],
});

export const renewTreaty = privilegedCommand('POST /admin/recognition-treaties/{treaty_id}/renew', {
  summary: 'Replace a treaty by one that is valid for longer, with the same scope',
  body: {
    subject_public_keys: optional(
      Type.Array(PublicKey, { minItems: 1, description: 'Those of the treaty when absent' }),
      null,
      'invalid_keys_of_others',
    ),
    validity_hours: optional(hours(MAX_VALIDITY_HOURS), 168, 'invalid_validity_hours', {
      isLenient: true,
    }),
  },
  exampleNeeds: NEEDS_ID,
  answer: RecognitionTreaty,
  refusals: ['private_key_given', 'treaty_not_found', 'wrong_issuer', 'treaty_revoked'],
});

export const setTreatyEndpoint = privilegedCommand(
  'POST /admin/recognition-treaties/{treaty_id}/endpoint',
  {
    summary: 'Set the address from which the subject of a treaty is fetched, or none',
    body: { endpoint: optional(Endpoint, null, 'invalid_endpoint') },
    exampleNeeds: NEEDS_ID,
    answer: TreatyEndpoint,
    refusals: ['treaty_not_found', 'treaty_revoked'],
  },
);

export const revokeTreaty = privilegedCommand(
  'POST /admin/recognition-treaties/{treaty_id}/revoke',
  {
    summary: 'End a treaty; a reason renewed_by:<id> or replaced_by:<id> names its successor',
    body: { reason: optional(Text, 'unspecified') },
    exampleNeeds: NEEDS_ID,
    answer: TreatyRevocation,
    refusals: ['treaty_not_found'],
  },
);

export const followTreaty = privilegedCommand(
  'POST /admin/recognition-treaties/{treaty_id}/follow',
  {
    maxBodyBytes: LARGE_BODY_BYTES,
    summary: 'Replace a treaty after its subject has replaced its authority key',
    description: `Send what GET /authority-keys of the subject answers. Its statements are followed from the keys that the
treaty names. After a theft only the root key of the subject vouches for the new key, so the treaty or the request must
name it.`,
    body: {
      authority_keys: required(ChainInput, 'invalid_authority_keys'),
      root_public_key: optional(PublicKey, null),
    },
    exampleNeeds: NEEDS_ID,
    answer: RecognitionTreaty,
    refusals: [
      'private_key_given',
      'treaty_not_found',
      'wrong_issuer',
      'treaty_revoked',
      'treaty_expired',
      'chain_rejected',
      'nothing_to_follow',
    ],
  },
);

export const listTreaties = publicList('GET /recognition-treaties', {
  limit: 'SEARCH',
  list: { member: 'recognition_treaties', isCounted: true },
  summary: 'Persisted treaties with their lifecycle, oldest first',
  query: {
    issuer_sovereign_id: text('Only of this issuer'),
    subject_sovereign_id: text('Only with this subject'),
    status: word(TreatyStatus.enum, 'Only with this status'),
  },
  answer: TreatyList,
});

export const readTreaty = publicQuery('GET /recognition-treaties/{treaty_id}', {
  summary: 'One treaty with its lifecycle',
  answer: TreatyRow,
  exampleNeeds: NEEDS_ID,
  refusals: ['treaty_not_found'],
});
