/** The roster, and the keys of operators [core-4-9], [core-4-15]. */
import { NodeCount, OperatorKeyRevocation } from '../answers/operators.ts';
import { mapped } from '../http/body.ts';
import { answerReply } from '../http/reply.ts';
import { operatorOf, type RouteEntry } from '../http/route.ts';
import { reasonBody } from './reason.ts';
import { rosterReply } from './roster.ts';

export const operatorRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/nodes',
    call: 'countNodes',
    operatorCall: 'openRoster',
    limit: 'none',
    summary: 'Count of active nodes; with operator headers, their roster',
    description:
      'Operator headers that fail verification give 401, never the public form. A long roster is sent while it is read.',
    answer: NodeCount,
    refusals: [],
    handle: async ({ operator }, edge) =>
      operator === null
        ? answerReply(await edge.call('countNodes', null))
        : rosterReply(operator, edge),
  },
  {
    method: 'POST',
    path: '/admin/operator-keys/{key_id}/revoke',
    call: 'revokeOperatorKey',
    limit: 'ADMIN',
    summary: 'Switch an operator key off for good',
    body: reasonBody.schema,
    exampleNeeds: { what: 'the id of a configured key', otherwise: 'unknown_operator_key' },
    answer: OperatorKeyRevocation,
    refusals: ['unknown_operator_key', 'last_active_operator_key'],
    async handle(request, edge) {
      const keyId = request.params.key_id ?? '';
      const input = mapped(reasonBody.read(request.body), ({ reason }) => ({ keyId, reason }));
      const command = { operator: operatorOf(request), input };
      return answerReply(await edge.call('revokeOperatorKey', command));
    },
  },
];
