/** Intents and policies of data usage, built independently of the program. */
import type { JsonObject } from '../../src/base/json/value.ts';
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
