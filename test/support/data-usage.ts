/** Intents and policies of data usage, built independently of the program. */
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import { formatInstant } from '../../src/base/timestamp.ts';
import { HOUR, MINUTE } from './clock.ts';
import { freshId } from './trust.ts';
import { type Party, singlySigned } from './trust-protocol.ts';

export const SOURCE = {
  source_id: 's-1',
  source_type: 'proprietary',
  owner_sovereign_id: 'beta',
  classification_tags: ['internal', 'internal'],
};

/** A request for a policy. */
export function policyTerms(now: number): Record<string, JsonValue> {
  return {
    licensee_sovereign_id: 'beta',
    allowed_source_ids: ['s-1', 's-2', 's-1'],
    allowed_access_types: ['read', 'derive'],
    max_volume_bytes_per_session: 1000,
    prohibited_classification_tags: ['secret'],
    valid_from: formatInstant(now),
    valid_until: formatInstant(now + HOUR),
  };
}

/** A request for an intent. */
export const ACCESS: Readonly<Record<string, JsonValue>> = {
  sources: [SOURCE, { ...SOURCE, source_id: 's-2', source_type: 'database' }, SOURCE],
  access_types: ['read', 'delete', 'read'],
  decision_id: 'decision',
  estimated_volume_bytes: 5000,
};

/** An intent that the policy of `policyBy` allows. */
export function intentBy(agent: Party, now: number, changes: JsonObject = {}): JsonObject {
  const record = {
    intent_id: freshId('intent'),
    agent_sovereign_id: agent.name,
    decision_id: 'decision',
    declared_sources: [SOURCE],
    declared_access_types: ['read'],
    estimated_volume_bytes: 1000,
    declared_at: formatInstant(now - MINUTE),
    expires_at: formatInstant(now + 4 * MINUTE),
    ...changes,
  };
  return singlySigned(record, agent.key, agent.name);
}

export function policyBy(licensor: Party, now: number, changes: JsonObject = {}): JsonObject {
  const record = {
    policy_id: freshId('policy'),
    licensor_sovereign_id: licensor.name,
    licensee_sovereign_id: 'somebody',
    allowed_source_ids: ['s-1', 's-2'],
    allowed_access_types: ['read', 'derive'],
    max_volume_bytes_per_session: 1000,
    prohibited_classification_tags: ['secret', 'health'],
    valid_from: formatInstant(now - HOUR),
    valid_until: formatInstant(now + HOUR),
    ...changes,
  };
  return singlySigned(record, licensor.key);
}
