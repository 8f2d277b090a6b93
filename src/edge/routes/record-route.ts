import type { JsonObject } from '../../base/json/value.ts';
import type { CallOf, Taken, TrustCall } from '../../protocol/contract/calls.ts';
import type { Input, OperatorClaim } from '../../protocol/contract/claims.ts';
import type { Fresh } from '../../protocol/records/record.ts';
import { answerReply } from '../reply.ts';
import { operatorOf, type RouteEntry } from '../route.ts';
import { freshFor, inputOf } from './trust-members.ts';

type Described = Pick<
  RouteEntry,
  'path' | 'summary' | 'description' | 'body' | 'example' | 'exampleNeeds' | 'answer' | 'refusals'
>;

interface RecordRoute<Name extends TrustCall> extends Described {
  readonly command: Name;
  /** The input of the command from the body; throws the refusal of an invalid body. */
  read(body: JsonObject, fresh: Fresh): Taken<Name>;
}

/** A route on which the authority builds and signs a record for an operator of standard tier. */
export function recordRoute<Name extends TrustCall>({
  command,
  read,
  ...described
}: RecordRoute<Name>): RouteEntry {
  return {
    ...described,
    method: 'POST',
    call: command,
    limit: 'ADMIN',
    created: 'always',
    async handle(request, edge) {
      const input: Input<Taken<Name>> = inputOf(() => read(request.body, freshFor(request, edge)));
      const asked: { operator: OperatorClaim; input: typeof input } = {
        operator: operatorOf(request),
        input,
      };
      return answerReply(await edge.call(command, asked as CallOf<Name>));
    },
  };
}
