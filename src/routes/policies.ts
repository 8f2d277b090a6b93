/** Policy versions (wire rules 4.10). */
import Type from 'typebox';
import { bodyReader, mapped } from '../http/body.ts';
import { withAnswer } from '../http/edge.ts';
import { answerReply } from '../http/reply.ts';
import { operatorOf, type Route } from '../http/route.ts';
import { PolicyManifest } from '../records/policy-manifest.ts';
import { Filled, Name, Timestamp } from './scalars.ts';

const { min_client_version, allowed_ports, allowed_services } = PolicyManifest.properties;
const { preferred_transports, max_hops } = PolicyManifest.properties.routing.properties;

const publishBody = bodyReader(
  Type.Object({
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
  }),
);

const rollBackBody = bodyReader(Type.Object({ policy_id: Filled }), {
  codes: { policy_id: 'missing_policy_id' },
});

export const policyRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/admin/policy',
    access: 'operator-privileged',
    limit: 'ADMIN',
    creates: true,
    summary: 'Publish and activate a policy version',
    description: 'The authority stamps and signs; the same policy_id again replaces that version.',
    body: publishBody.schema,
    answer: PolicyManifest,
    refusals: [],
    handle(request, edge) {
      const input = mapped(
        publishBody.read(request.body),
        ({ policy_id, min_client_version, allowed_ports, allowed_services, routing }) => ({
          policyId: policy_id ?? null,
          content: withoutAbsent({ min_client_version, allowed_ports, allowed_services, routing }),
        }),
      );
      return withAnswer(
        edge.call('publishPolicy', { operator: operatorOf(request), input }),
        (answer) => answerReply(answer, edge.settings.createdStatus),
      );
    },
  },
  {
    method: 'POST',
    path: '/admin/policy/rollback',
    access: 'operator-privileged',
    limit: 'ADMIN',
    summary: 'Activate a persisted policy version again',
    body: rollBackBody.schema,
    answer: PolicyManifest,
    refusals: ['missing_policy_id', 'policy_not_found'],
    handle(request, edge) {
      const input = mapped(rollBackBody.read(request.body), ({ policy_id }) => ({
        policyId: policy_id,
      }));
      const command = { operator: operatorOf(request), input };
      return withAnswer(edge.call('rollBackPolicy', command), answerReply);
    },
  },
  {
    method: 'GET',
    path: '/admin/policy/history',
    access: 'operator',
    limit: 'none',
    summary: 'Persisted policy versions, newest first',
    answer: Type.Object({
      versions: Type.Array(
        Type.Object({
          policy_id: Type.String(),
          active: Type.Boolean(),
          created_at: Timestamp,
          policy: PolicyManifest,
        }),
      ),
    }),
    refusals: [],
    handle: (request, edge) =>
      withAnswer(edge.call('readPolicyHistory', operatorOf(request)), answerReply),
  },
];

/** Members that were not sent get the record's defaults, so they must be absent, not undefined. */
function withoutAbsent(content: object): { readonly [member: string]: unknown } {
  return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== undefined));
}
