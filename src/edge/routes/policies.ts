/** Policy versions [core-4-10]. */
import Type from 'typebox';
import type { JsonObject } from '../../base/json/value.ts';
import { PolicyHistory } from '../../protocol/answers/recognition.ts';
import { mapped, refused } from '../../protocol/api/input.ts';
import { Filled, Name } from '../../protocol/api/scalars.ts';
import type { CallOf } from '../../protocol/contract/calls.ts';
import { PolicyManifest, readPolicyManifest } from '../../protocol/records/policy-manifest.ts';
import { LARGE_BODY_BYTES } from '../../protocol/route-description.ts';
import { bodyReader } from '../body.ts';
import { operatorOf, type RouteEntry } from '../route.ts';
import { listReply, operatorPage, PAGE_QUERY, PAGE_REFUSALS } from './listing.ts';
import { operatorRoute } from './operator-route.ts';

const { min_client_version, allowed_ports, allowed_services } = PolicyManifest.properties;
const { preferred_transports, max_hops } = PolicyManifest.properties.routing.properties;

const PublishBody = Type.Object({
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

/** A manifest without the operator's members, used to read each of them with the record's reader. */
const STAMPED = {
  policy_id: '',
  issued_at: '2026-01-01T00:00:00Z',
  issued_by: '',
  min_client_version: '',
};

const policyIdBody = bodyReader(Type.Object({ policy_id: Type.Optional(Name) }));

const rollBackBody = bodyReader(Type.Object({ policy_id: Filled }), {
  codes: { policy_id: 'missing_policy_id' },
});

export const policyRoutes: readonly RouteEntry[] = [
  operatorRoute({
    method: 'POST',
    path: '/admin/policy',
    call: 'publishPolicy',
    limit: 'ADMIN',
    maxBodyBytes: LARGE_BODY_BYTES,
    created: 'as_configured',
    summary: 'Publish and activate a policy version',
    description: 'The authority stamps and signs; the same policy_id again replaces that version.',
    body: PublishBody,
    answer: PolicyManifest,
    refusals: [],
    input: (request) => publishInput(request.body),
  }),
  operatorRoute({
    method: 'POST',
    path: '/admin/policy/rollback',
    call: 'rollBackPolicy',
    limit: 'ADMIN',
    summary: 'Activate a persisted policy version again',
    body: rollBackBody.schema,
    exampleNeeds: { what: 'a policy version of this network', otherwise: 'policy_not_found' },
    answer: PolicyManifest,
    refusals: ['missing_policy_id', 'policy_not_found'],
    input: (request) =>
      mapped(rollBackBody.read(request.body), ({ policy_id }) => ({
        policyId: policy_id,
      })),
  }),
  {
    method: 'GET',
    path: '/admin/policy/history',
    call: 'readPolicyHistory',
    limit: 'none',
    query: Type.Object(PAGE_QUERY),
    summary: 'Persisted policy versions, newest first',
    answer: PolicyHistory,
    refusals: PAGE_REFUSALS,
    handle(request, edge) {
      const operator = operatorOf(request);
      const page = operatorPage(
        (input) => edge.call('readPolicyHistory', { operator, input }),
        (next) => edge.call('readPolicyPage', next),
      );
      return listReply({ member: 'versions', isCounted: false, page }, request);
    },
  },
];

/** Members that were not sent get the record's defaults, so they are left out here. */
function publishInput(body: JsonObject): CallOf<'publishPolicy'>['input'] {
  const read = policyIdBody.read(body);
  if (!read.ok) return read;
  const content = Object.fromEntries(
    CONTENT.filter((name) => (body[name] ?? null) !== null).map((name) => [name, body[name]]),
  );
  const errors = Object.keys(content)
    .filter((name) => readPolicyManifest({ ...STAMPED, [name]: content[name] }) === null)
    .map((name) => ({ loc: ['body', name], msg: 'does not have the expected form', type: 'type' }));
  if (errors.length > 0) {
    return refused('request_validation_failed', { errors });
  }
  return { ok: true, value: { policyId: read.value.policy_id ?? null, content } };
}
