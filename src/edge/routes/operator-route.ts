import type { Input } from '../../protocol/api/input.ts';
import type {
  CallInput,
  CallOf,
  OperatorCall,
  OperatorCallName,
} from '../../protocol/contract/calls.ts';
import type { RouteDescription } from '../../protocol/route-description.ts';
import type { Edge } from '../edge.ts';
import { answerReply } from '../reply.ts';
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
export function operatorRoute<Name extends OperatorCallName>({
  input,
  ...described
}: OperatorRoute<Name>): RouteEntry {
  return {
    ...described,
    async handle(request, edge) {
      const asked: OperatorCall<CallInput<Name>> = {
        operator: operatorOf(request),
        input: await input(request, edge),
      };
      return answerReply(await edge.call(described.call, asked as CallOf<Name>));
    },
  };
}
