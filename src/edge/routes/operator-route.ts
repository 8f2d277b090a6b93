import type { Input } from '../../protocol/api/input.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type {
  CallInput,
  CallOf,
  OperatorCall,
  OperatorCallName,
} from '../../protocol/contract/calls.ts';
import type { RouteDescription } from '../../protocol/route-description.ts';
import type { Edge } from '../edge.ts';
import { answerReply, type Reply, slicedReply } from '../reply.ts';
import { operatorOf, type RouteEntry, type RouteRequest } from '../route.ts';

interface OperatorRoute<Name extends OperatorCallName>
  extends Omit<RouteDescription, 'access' | 'keepsAnswer'> {
  readonly call: Name;
  /** The input of the call, or the refusal of an invalid body, which is answered only to admitted callers. */
  input(
    request: RouteRequest,
    edge: Edge,
  ): Input<CallInput<Name>> | Promise<Input<CallInput<Name>>>;
}

/** A route that makes one call for an operator and returns its answer. */
export function operatorRoute<Name extends OperatorCallName>(
  { input, ...described }: OperatorRoute<Name>,
  reply: (answer: Answer) => Reply = answerReply,
): RouteEntry {
  return {
    ...described,
    async handle(request, edge) {
      const asked: OperatorCall<CallInput<Name>> = {
        operator: operatorOf(request),
        input: await input(request, edge),
      };
      return reply(await edge.call(described.call, asked as CallOf<Name>));
    },
  };
}

/** A route whose answer is counted in slices; while too many of them wait, another one is refused. */
export function countRoute<Name extends 'readHorizon' | 'readAdoption' | 'countContacts'>(
  route: Omit<OperatorRoute<Name>, 'method' | 'limit'>,
): RouteEntry {
  const refusals = [...route.refusals, 'rate_limit_exceeded'] as const;
  return operatorRoute<Name>({ ...route, method: 'GET', limit: 'none', refusals }, slicedReply);
}
