/** Data usage: license policy, access intent [trust-5-10], [trust-5-11]. */
import Type from 'typebox';
import { isList, type JsonObject } from '../../base/json/value.ts';
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
  listOf,
  memberOf,
  memberOr,
  omittable,
  RequestTimestamp,
  textOf,
  textsOf,
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
      memberOf(body, 'allowed_source_ids', listOf, 'missing_policy_fields');
      memberOf(body, 'allowed_access_types', listOf, 'missing_policy_fields');
      const window = windowOf(body, 'invalid_timestamps');
      const refusal = 'request_validation_failed';
      const tags = 'prohibited_classification_tags';
      return {
        licensee_sovereign_id: memberOf(body, 'licensee_sovereign_id', textOf, refusal),
        allowed_source_ids: memberOf(body, 'allowed_source_ids', textsOf, refusal),
        allowed_access_types: memberOf(body, 'allowed_access_types', textsOf, refusal),
        max_volume_bytes_per_session: volumeIn(body, 'max_volume_bytes_per_session', refusal),
        [tags]: memberOr(body, tags, [], textsOf, refusal),
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
    (body) => {
      const { sources: given, access_types } = body;
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
      const refusal = 'intent_create_failed';
      return {
        sources,
        access_types: memberOf(body, 'access_types', textsOf, refusal),
        decision_id: memberOr(body, 'decision_id', null, textOf, refusal),
        estimated_volume_bytes: volumeIn(body, 'estimated_volume_bytes', refusal),
      };
    },
  ),
  answer: DataAccessIntent,
});

/** A number of bytes; null if absent. */
function volumeIn(body: JsonObject, name: string, refusal: RefusalName): number | null {
  if ((body[name] ?? null) === null) return null;
  const bytes = memberOf(body, name, integerOf, refusal);
  demand(bytes >= 0, refusal, `invalid_${name}`);
  return bytes;
}
