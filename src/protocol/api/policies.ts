/** Policy versions [core-4-10]. */
import Type from 'typebox';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { PolicyHistory } from '../answers/recognition.ts';
import { PolicyManifest, readPolicyManifest } from '../records/policy-manifest.ts';
import { Refusal } from '../refusals.ts';
import { LARGE_BODY_BYTES } from '../route-description.ts';
import { operatorList, privilegedCommand } from './define.ts';
import { Filled, Name, optional, type ReadContext, readBy, required } from './members.ts';
import { bodyReader } from './read.ts';

const { min_client_version, allowed_ports, allowed_services } = PolicyManifest.properties;
const { preferred_transports, max_hops } = PolicyManifest.properties.routing.properties;

const PolicyChange = Type.Object({
  policy_id: Type.Optional(Name),
  min_client_version: Type.Optional(min_client_version),
  allowed_ports: Type.Optional(allowed_ports),
  allowed_services: Type.Optional(allowed_services),
  routing: Type.Optional(
    Type.Object({
      preferred_transports: Type.Optional(preferred_transports),
      max_hops: Type.Optional(max_hops),
    }),
  ),
});

const CONTENT = ['min_client_version', 'allowed_ports', 'allowed_services', 'routing'] as const;

/** The manifest members that an operator chooses, each only if it was sent; the authority sets the others. */
type Content = { readonly [Member in (typeof CONTENT)[number]]?: JsonValue };

/** A manifest without the operator's members, used to read each of them with the record's reader. */
const STAMPED = {
  policy_id: '',
  issued_at: '2026-01-01T00:00:00Z',
  issued_by: '',
  min_client_version: '',
};

const readPolicyId = bodyReader<{ readonly policy_id: string | null }>(
  Type.Object({ policy_id: Type.Optional(Name) }),
  { policy_id: optional(Name, null) },
);

export const publishPolicy = privilegedCommand('POST /admin/policy', {
  maxBodyBytes: LARGE_BODY_BYTES,
  created: 'as_configured',
  summary: 'Publish and activate a policy version',
  description: 'The authority stamps and signs; the same policy_id again replaces that version.',
  body: readBy(PolicyChange, [], readPolicyChange),
  answer: PolicyManifest,
});

export const rollBackPolicy = privilegedCommand('POST /admin/policy/rollback', {
  summary: 'Activate a persisted policy version again',
  body: { policy_id: required(Filled, 'missing_policy_id') },
  exampleNeeds: { what: 'a policy version of this network', otherwise: 'policy_not_found' },
  answer: PolicyManifest,
  refusals: ['policy_not_found'],
});

export const readPolicyHistory = operatorList('GET /admin/policy/history', {
  list: { member: 'versions', isCounted: false },
  summary: 'Persisted policy versions, newest first',
  answer: PolicyHistory,
});

/** Members that were not sent get the record's defaults, so they are left out here. */
function readPolicyChange(
  body: JsonObject,
  context: ReadContext,
): { readonly policy_id: string | null } & Content {
  const named = readPolicyId({ params: {}, query: {}, body }, context);
  if (!named.ok) throw new Refusal(named.refusal, named.details);
  const content: Content = Object.fromEntries(
    CONTENT.filter((name) => (body[name] ?? null) !== null).map((name) => [name, body[name]]),
  );
  const errors = Object.entries(content)
    .filter(([name, value]) => readPolicyManifest({ ...STAMPED, [name]: value }) === null)
    .map(([name]) => ({
      loc: ['body', name],
      msg: 'does not have the expected form',
      type: 'type',
    }));
  if (errors.length > 0) throw new Refusal('request_validation_failed', { errors });
  return { ...named.value, ...content };
}
