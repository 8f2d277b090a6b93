/** Requests for tests of public verification. */
import type { JsonObject, JsonValue } from '../../src/base/json/value.ts';
import type { Sovereign } from './trust.ts';

/** A case under construction, which every fault spoils in its own way. */
export type Draft = Record<string, JsonValue>;

export function entryOf({ name, key }: Sovereign): JsonObject {
  return {
    sovereign_id: name,
    public_keys: [key.publicKey],
    allowed_roles: ['role:client'],
    accepted_statuses: ['active'],
  };
}

export function policyOf(...recognized_issuers: readonly JsonObject[]): JsonObject {
  return { local_sovereign_id: 'alpha', recognized_issuers, revoked_attestation_ids: [] };
}
