/** Data usage: license policy, access intent [trust-5-10], [trust-5-11]. */
import Type from 'typebox';
import { areTexts, isList, type JsonValue } from '../../base/json/value.ts';
import {
  DataAccessIntent,
  DataLicensePolicy,
  DataSourceDescriptor,
  readDataSourceDescriptor,
} from '../records/data-usage.ts';
import { MAX_ACCESS_TYPES, MAX_SOURCES } from '../records/record.ts';
import { demand, type RefusalName, refuse } from '../refusals.ts';
import { operatorCommand, publicDocument } from './define.ts';
import { Filled, readBy } from './members.ts';
import {
  demandPresent,
  integerOf,
  isMissing,
  omittable,
  RequestTimestamp,
  windowOf,
} from './trust-members.ts';

const Texts = Type.Array(Type.String());
const Volume = omittable(Type.Integer({ minimum: 0 }));

export const readLicensePolicy = publicDocument('GET /data-usage/policy', {
  limit: 'POLICY_READ',
  summary: 'Data-license policy in force',
  description: 'Kept in process memory only: after a restart there is none.',
  answer: DataLicensePolicy,
  refusals: ['no_policy'],
});

export const createLicensePolicy = operatorCommand('POST /admin/data-usage/policy', {
  created: 'always',
  summary: 'License data to another sovereign',
  description: 'Replaces the policy in force.',
  body: readBy(
    Type.Object({
      licensee_sovereign_id: Filled,
      allowed_source_ids: Texts,
      allowed_access_types: Texts,
      max_volume_bytes_per_session: Volume,
      prohibited_classification_tags: omittable(Texts),
      valid_from: RequestTimestamp,
      valid_until: RequestTimestamp,
    }),
    ['missing_policy_fields', 'invalid_timestamps'],
    (body) => {
      demandPresent(body, ['licensee_sovereign_id'], 'missing_policy_fields');
      const { licensee_sovereign_id: licensee, allowed_source_ids: sources } = body;
      const { allowed_access_types: types, max_volume_bytes_per_session: cap } = body;
      demand(isList(sources), 'missing_policy_fields', 'invalid_allowed_source_ids');
      demand(isList(types), 'missing_policy_fields', 'invalid_allowed_access_types');
      const window = windowOf(body, 'invalid_timestamps');
      const isText = typeof licensee === 'string';
      demand(isText, 'request_validation_failed', 'invalid_licensee_sovereign_id');
      const { prohibited_classification_tags: tags } = body;
      return {
        licensee_sovereign_id: licensee,
        allowed_source_ids: textList(sources, 'allowed_source_ids'),
        allowed_access_types: textList(types, 'allowed_access_types'),
        max_volume_bytes_per_session: volumeOf(
          cap,
          'request_validation_failed',
          'max_volume_bytes_per_session',
        ),
        prohibited_classification_tags: isMissing(tags)
          ? []
          : textList(tags, 'prohibited_classification_tags'),
        ...window,
      };
    },
  ),
  answer: DataLicensePolicy,
});

export const declareIntent = operatorCommand('POST /admin/data-usage/intent', {
  created: 'always',
  summary: 'Declare an access to data as this sovereign',
  body: readBy(
    Type.Object({
      sources: Type.Array(DataSourceDescriptor, { minItems: 1, maxItems: MAX_SOURCES }),
      access_types: Type.Array(Type.String(), { minItems: 1, maxItems: MAX_ACCESS_TYPES }),
      decision_id: omittable(Type.String()),
      estimated_volume_bytes: Volume,
    }),
    ['missing_intent_fields', 'invalid_source', 'intent_create_failed'],
    ({ sources: given, access_types, decision_id: decision, estimated_volume_bytes: estimate }) => {
      const areSources = isList(given) && given.length > 0;
      demand(areSources, 'missing_intent_fields', 'missing_sources');
      const areTypes = isList(access_types) && access_types.length > 0;
      demand(areTypes, 'missing_intent_fields', 'missing_access_types');
      const areFew = access_types.length <= MAX_ACCESS_TYPES;
      demand(areFew, 'missing_intent_fields', 'too_many_access_types');
      demand(given.length <= MAX_SOURCES, 'invalid_source', 'too_many_sources');
      const sources = given.map(
        (source) => readDataSourceDescriptor(source) ?? refuse('invalid_source', 'invalid_source'),
      );
      demand(areTexts(access_types), 'intent_create_failed', 'invalid_access_types');
      const decision_id = isMissing(decision) ? null : decision;
      const isId = decision_id === null || typeof decision_id === 'string';
      demand(isId, 'intent_create_failed', 'invalid_decision_id');
      const volume = volumeOf(estimate, 'intent_create_failed', 'estimated_volume_bytes');
      return { sources, access_types, decision_id, estimated_volume_bytes: volume };
    },
  ),
  answer: DataAccessIntent,
});

function textList(value: JsonValue | undefined, name: string): string[] {
  const isTextList = isList(value) && areTexts(value);
  demand(isTextList, 'request_validation_failed', `invalid_${name}`);
  return [...value];
}

/** A number of bytes; null if absent. */
function volumeOf(value: JsonValue | undefined, refusal: RefusalName, name: string) {
  if (value === undefined || value === null) return null;
  const bytes = integerOf(value);
  demand(bytes !== null && bytes >= 0, refusal, `invalid_${name}`);
  return bytes;
}
