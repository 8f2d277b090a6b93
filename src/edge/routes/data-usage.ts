/**
 * Data usage: license policy, access intent, verification [trust-5-10], [trust-5-11], [trust-6-7],
 * [trust-6-8].
 */
import Type from 'typebox';
import { areTexts, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { demand, type RefusalName, refuse } from '../../base/refusal.ts';
import { IntentVerdict } from '../../protocol/answers/verdicts.ts';
import { Filled } from '../../protocol/api/scalars.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import { MAX_ACCESS_TYPES, MAX_SOURCES } from '../../protocol/records/bounds.ts';
import {
  DataAccessIntent,
  DataLicensePolicy,
  DataSourceDescriptor,
  readDataSourceDescriptor,
} from '../../protocol/records/data-usage.ts';
import { judgeIntent } from '../../protocol/verification.ts';
import { documentReply, refusalReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';
import { currentDocument } from './documents.ts';
import {
  demandPresent,
  integerOf,
  isMissing,
  Keys,
  optional,
  RequestTimestamp,
  recordRoute,
  windowOf,
} from './trust-requests.ts';
import { verificationRoute } from './verification-route.ts';

const Texts = Type.Array(Type.String());
const Volume = optional(Type.Integer({ minimum: 0 }));

export const dataUsageRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/data-usage/policy',
    access: 'public',
    limit: 'POLICY_READ',
    hasEtag: true,
    summary: 'Data-license policy in force',
    description: 'Kept in process memory only: after a restart there is none.',
    answer: DataLicensePolicy,
    refusals: ['no_policy'],
    async handle(request, edge) {
      const policy = await currentDocument('data_license_policy', request.now, edge);
      if (policy === undefined) return refusalReply('no_policy');
      return documentReply(policy, request);
    },
  },
  recordRoute({
    path: '/admin/data-usage/policy',
    summary: 'License data to another sovereign',
    description: 'Replaces the policy in force.',
    body: Type.Object({
      licensee_sovereign_id: Filled,
      allowed_source_ids: Texts,
      allowed_access_types: Texts,
      max_volume_bytes_per_session: Volume,
      prohibited_classification_tags: optional(Texts),
      valid_from: RequestTimestamp,
      valid_until: RequestTimestamp,
    }),
    answer: DataLicensePolicy,
    refusals: ['missing_policy_fields', 'invalid_timestamps'],
    command: 'createLicensePolicy',
    read: policyInput,
  }),
  recordRoute({
    path: '/admin/data-usage/intent',
    summary: 'Declare an access to data as this sovereign',
    body: Type.Object({
      sources: Type.Array(DataSourceDescriptor, { minItems: 1, maxItems: MAX_SOURCES }),
      access_types: Type.Array(Type.String(), { minItems: 1, maxItems: MAX_ACCESS_TYPES }),
      decision_id: optional(Type.String()),
      estimated_volume_bytes: Volume,
    }),
    answer: DataAccessIntent,
    refusals: ['missing_intent_fields', 'invalid_source', 'intent_create_failed'],
    command: 'declareIntent',
    read: intentInput,
  }),
  verificationRoute({
    path: '/data-usage/verify',
    summary: 'Verify an access intent against a license policy',
    description: "The policy's own signature, and who is licensed by it, are not examined.",
    body: Type.Object({
      intent: DataAccessIntent,
      policy: DataLicensePolicy,
      agent_public_keys: Keys,
    }),
    answer: IntentVerdict,
    refusals: ['missing_verify_fields', 'invalid_input'],
    event: 'data_access_intent_verified',
    judge(body, by) {
      demandPresent(body, ['intent', 'policy'], 'missing_verify_fields');
      const { verdict, intentId } = judgeIntent(body, by);
      const { valid, violation_count } = verdict;
      return { verdict, logged: { intent_id: intentId, valid, violation_count } };
    },
  }),
];

function policyInput(body: JsonObject): CallInput<'createLicensePolicy'> {
  demandPresent(body, ['licensee_sovereign_id'], 'missing_policy_fields');
  const { licensee_sovereign_id: licensee, max_volume_bytes_per_session: cap } = body;
  const { allowed_source_ids: sourceIds, allowed_access_types: accessTypes } = body;
  demand(isList(sourceIds), 'missing_policy_fields', 'invalid_allowed_source_ids');
  demand(isList(accessTypes), 'missing_policy_fields', 'invalid_allowed_access_types');
  const window = windowOf(body, 'invalid_timestamps');
  demandText(licensee, 'licensee_sovereign_id');
  const { prohibited_classification_tags: tags } = body;
  return {
    licensee,
    sourceIds: textList(sourceIds, 'allowed_source_ids'),
    accessTypes: textList(accessTypes, 'allowed_access_types'),
    maxVolume: volumeOf(cap, 'request_validation_failed', 'max_volume_bytes_per_session'),
    prohibitedTags: isMissing(tags) ? [] : textList(tags, 'prohibited_classification_tags'),
    ...window,
  };
}

function demandText(value: JsonValue | undefined, name: string): asserts value is string {
  demand(typeof value === 'string', 'request_validation_failed', `invalid_${name}`);
}

function textList(value: JsonValue | undefined, name: string): readonly string[] {
  const isTextList = isList(value) && areTexts(value);
  demand(isTextList, 'request_validation_failed', `invalid_${name}`);
  return value;
}

/** A number of bytes; null if absent. */
function volumeOf(value: JsonValue | undefined, refusal: RefusalName, name: string) {
  if (value === undefined || value === null) return null;
  const bytes = integerOf(value);
  demand(bytes !== null && bytes >= 0, refusal, `invalid_${name}`);
  return bytes;
}

function intentInput(body: JsonObject): CallInput<'declareIntent'> {
  const { sources, access_types: accessTypes, decision_id: decision } = body;
  const areSources = isList(sources) && sources.length > 0;
  demand(areSources, 'missing_intent_fields', 'missing_sources');
  const areTypes = isList(accessTypes) && accessTypes.length > 0;
  demand(areTypes, 'missing_intent_fields', 'missing_access_types');
  const areFew = accessTypes.length <= MAX_ACCESS_TYPES;
  demand(areFew, 'missing_intent_fields', 'too_many_access_types');
  demand(sources.length <= MAX_SOURCES, 'invalid_source', 'too_many_sources');
  const declared = sources.map(
    (source) => readDataSourceDescriptor(source) ?? refuse('invalid_source', 'invalid_source'),
  );
  demand(areTexts(accessTypes), 'intent_create_failed', 'invalid_access_types');
  const decisionId = isMissing(decision) ? null : decision;
  const isId = decisionId === null || typeof decisionId === 'string';
  demand(isId, 'intent_create_failed', 'invalid_decision_id');
  const estimate = body.estimated_volume_bytes;
  const volume = volumeOf(estimate, 'intent_create_failed', 'estimated_volume_bytes');
  return { sources: declared, accessTypes, decisionId, estimatedVolume: volume };
}
