import type { CommandOf, TrustCommand } from '../authority/open.ts';
import type { Input, OperatorClaim } from '../contract/claims.ts';
import { withAnswer } from '../http/edge.ts';
import { answerReply } from '../http/reply.ts';
import { operatorOf, type Route } from '../http/route.ts';
import type { JsonObject } from '../json/value.ts';
import type { Fresh } from '../records/record.ts';
import { freshFor, type InputValue, inputOf } from './trust-members.ts';

type Described = Pick<Route, 'path' | 'summary' | 'description' | 'body' | 'answer' | 'refusals'>;

interface RecordRoute<Name extends TrustCommand> extends Described {
  readonly command: Name;
  /** What the command takes from the body; throws the refusal of a body that does not fit. */
  read(body: JsonObject, fresh: Fresh): InputValue<Name>;
}

/** A route on which an operator of standard tier has the authority build and sign a record. */
export function recordRoute<Name extends TrustCommand>({
  command,
  read,
  ...described
}: RecordRoute<Name>): Route {
  return {
    ...described,
    method: 'POST',
    access: 'operator',
    limit: 'ADMIN',
    created: 'always',
    handle(request, edge) {
      const input: Input<InputValue<Name>> = inputOf(() =>
        read(request.body, freshFor(request, edge)),
      );
      const asked: { operator: OperatorClaim; input: typeof input } = {
        operator: operatorOf(request),
        input,
      };
      return withAnswer(edge.call(command, asked as CommandOf<Name>), answerReply);
    },
  };
}
