/** The expiry horizon [core-4-20]. */

import { Horizon } from '../../protocol/rows/horizon.ts';
import { answerReply, refusalReply } from '../reply.ts';
import { NOTHING, operatorOf, type RouteEntry } from '../route.ts';

export const horizonRoutes: readonly RouteEntry[] = [
  {
    method: 'GET',
    path: '/admin/horizon',
    call: 'readHorizon',
    limit: 'none',
    summary: 'What lapses, by kind and week, as counts',
    answer: Horizon,
    refusals: ['rate_limit_exceeded'],
    async handle(request, edge) {
      const query = { operator: operatorOf(request), input: NOTHING };
      const answer = await edge.call('readHorizon', query);
      const isTooBusy = !answer.ok && answer.refusal === 'rate_limit_exceeded';
      if (!isTooBusy) return answerReply(answer);
      return refusalReply(answer.refusal, answer.details, 'Retry-After', '1');
    },
  },
];
