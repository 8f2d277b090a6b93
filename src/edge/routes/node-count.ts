/** The roster [core-4-15]. */
import { NodeCount } from '../../protocol/answers/operators.ts';
import { answerReply } from '../reply.ts';
import type { RouteEntry } from '../route.ts';
import { rosterReply } from './roster.ts';

export const nodeCountRoutes: readonly RouteEntry[] = [
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
];
