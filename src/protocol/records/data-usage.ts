/**
 * Data usage: the license that a sovereign grants, and the access that an agent declares under it [trust-2-15],
 * [trust-4-8].
 */

import Type, { type Static } from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { type Issuer, keysOf } from './issuer.ts';
import {
  Datetime,
  FreshId,
  instantOf,
  MAX_ACCESS_TYPES,
  MAX_SOURCES,
  nullable,
  recordReader,
  SignatureItem,
} from './record.ts';
import { isSinglySignedByAny, signSingly } from './signed-record.ts';

/** How long a declared intent is valid, in milliseconds. */
const INTENT_VALIDITY = 300_000;

const Texts = Type.Array(Type.String(), { default: [] });
const Volume = nullable(Type.Integer());

export const DataSourceDescriptor = Type.Object({
  source_id: Type.String(),
  source_type: Type.String(),
  owner_sovereign_id: Type.String(),
  classification_tags: Texts,
});
export type DataSourceDescriptor = Static<typeof DataSourceDescriptor>;

export const readDataSourceDescriptor = recordReader(DataSourceDescriptor);

export const DataLicensePolicy = Type.Object({
  policy_id: FreshId,
  licensor_sovereign_id: Type.String(),
  licensee_sovereign_id: Type.String(),
  /** Empty allows nothing. */
  allowed_source_ids: Texts,
  /** Empty allows only `read`. */
  allowed_access_types: Texts,
  max_volume_bytes_per_session: Volume,
  prohibited_classification_tags: Texts,
  valid_from: Datetime,
  valid_until: Datetime,
  signature: nullable(SignatureItem),
});
export type DataLicensePolicy = Static<typeof DataLicensePolicy>;

export const readDataLicensePolicy = recordReader(DataLicensePolicy);

export const DataAccessIntent = Type.Object({
  intent_id: FreshId,
  agent_sovereign_id: Type.String(),
  decision_id: Type.String(),
  declared_sources: Type.Array(DataSourceDescriptor, { maxItems: MAX_SOURCES }),
  declared_access_types: Type.Array(Type.String(), { maxItems: MAX_ACCESS_TYPES }),
  estimated_volume_bytes: Volume,
  declared_at: Datetime,
  expires_at: Datetime,
  signature: nullable(SignatureItem),
});
export type DataAccessIntent = Static<typeof DataAccessIntent>;

export const readDataAccessIntent = recordReader(DataAccessIntent);

/** Datetimes in their canonical spelling. */
export type LicenseTerms = Omit<
  DataLicensePolicy,
  'policy_id' | 'licensor_sovereign_id' | 'signature'
>;

export function buildLicensePolicy(issuer: Issuer, terms: LicenseTerms): DataLicensePolicy {
  const policy = {
    policy_id: issuer.uuid(),
    licensor_sovereign_id: issuer.sovereignId,
    ...terms,
  };
  return signSingly(policy, keysOf(issuer));
}

export interface DeclaredAccess {
  readonly sources: readonly DataSourceDescriptor[];
  readonly access_types: readonly string[];
  /** Null for a new id. */
  readonly decision_id: string | null;
  readonly estimated_volume_bytes: number | null;
}

/** The key id of an intent is the agent's sovereign id. */
export function buildAccessIntent(issuer: Issuer, access: DeclaredAccess): DataAccessIntent {
  const intent = {
    intent_id: issuer.uuid(),
    agent_sovereign_id: issuer.sovereignId,
    decision_id: access.decision_id ?? issuer.uuid(),
    declared_sources: [...access.sources],
    declared_access_types: [...access.access_types],
    estimated_volume_bytes: access.estimated_volume_bytes,
    declared_at: formatInstant(issuer.now),
    expires_at: formatInstant(issuer.now + INTENT_VALIDITY),
  };
  return signSingly(intent, keysOf(issuer), issuer.sovereignId);
}

export const VIOLATION_TYPES = [
  'intent_exceeds_license',
  'intent_expired',
  'policy_expired',
  'source_not_licensed',
  'prohibited_classification',
  'access_type_not_permitted',
  'volume_cap_exceeded',
] as const;
export type ViolationType = (typeof VIOLATION_TYPES)[number];

export interface Violation {
  readonly type: ViolationType;
  readonly detail: string;
}

/**
 * Everything in the intent that the policy does not allow. Does not check the policy's signature or whether the agent
 * is the licensee; an intent that its agent did not sign is not examined further.
 */
export function findViolations(
  intent: DataAccessIntent,
  policy: DataLicensePolicy,
  agentKeys: readonly string[],
  now: number,
  verify: VerifySignature,
): Violation[] {
  if (!isSinglySignedByAny(intent, agentKeys, verify)) {
    return [violation('intent_exceeds_license', 'the intent is not signed by its agent')];
  }
  return [
    ...expiryViolations(intent, policy, now),
    ...sourceViolations(intent, policy),
    ...accessViolations(intent, policy),
    ...volumeViolations(intent, policy),
  ];
}

/** The violations as returned to the client, each with its own id. */
export function violationRows(
  found: readonly Violation[],
  { intent_id, agent_sovereign_id }: DataAccessIntent,
  { now, uuid }: { readonly now: number; uuid(): string },
) {
  return found.map(({ type, detail }) => ({
    violation_id: uuid(),
    intent_id,
    record_id: null,
    agent_sovereign_id,
    violation_type: type,
    detail,
    detected_at: formatInstant(now),
  }));
}

function expiryViolations(
  intent: DataAccessIntent,
  policy: DataLicensePolicy,
  now: number,
): Violation[] {
  const found: Violation[] = [];
  if (now > instantOf(intent.expires_at)) {
    found.push(violation('intent_expired', `the intent expired at ${intent.expires_at}`));
  }
  const { valid_from, valid_until } = policy;
  if (now > instantOf(valid_until) || now < instantOf(valid_from)) {
    found.push(violation('policy_expired', `valid from ${valid_from} until ${valid_until}`));
  }
  return found;
}

function sourceViolations(intent: DataAccessIntent, policy: DataLicensePolicy): Violation[] {
  const allowed = new Set(policy.allowed_source_ids);
  const prohibited = new Set(policy.prohibited_classification_tags);
  return intent.declared_sources.flatMap(({ source_id, classification_tags }) => {
    const found: Violation[] = [];
    if (!allowed.has(source_id)) {
      found.push(violation('source_not_licensed', `source ${source_id} is not licensed`));
    }
    const tag = classification_tags.find((candidate) => prohibited.has(candidate));
    if (tag !== undefined) {
      found.push(violation('prohibited_classification', `source ${source_id} is tagged ${tag}`));
    }
    return found;
  });
}

function accessViolations(intent: DataAccessIntent, policy: DataLicensePolicy): Violation[] {
  const { allowed_access_types: types } = policy;
  const allowed = new Set(types.length === 0 ? ['read'] : types);
  return intent.declared_access_types
    .filter((type) => !allowed.has(type))
    .map((type) => violation('access_type_not_permitted', `access type ${type} is not permitted`));
}

function volumeViolations(intent: DataAccessIntent, policy: DataLicensePolicy): Violation[] {
  const { estimated_volume_bytes: estimate } = intent;
  const { max_volume_bytes_per_session: cap } = policy;
  if (cap === null || estimate === null || estimate <= cap) return [];
  return [violation('volume_cap_exceeded', `${estimate} bytes exceed the cap of ${cap}`)];
}

function violation(type: ViolationType, detail: string): Violation {
  return { type, detail };
}
