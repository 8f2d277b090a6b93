import type { JsonObject } from '../../base/json/value.ts';
import type { CallInput, TrustCall } from '../../protocol/contract/calls.ts';
import type { Fresh } from '../../protocol/records/record.ts';
import type { RouteEntry } from '../route.ts';
import { operatorRoute } from './operator-route.ts';
import { freshFor, inputOf } from './trust-members.ts';

type Described = Pick<
  RouteEntry,
  'path' | 'summary' | 'description' | 'body' | 'example' | 'exampleNeeds' | 'answer' | 'refusals'
>;

interface RecordRoute<Name extends TrustCall> extends Described {
  readonly command: Name;
  /** The input of the command from the body; throws the refusal of an invalid body. */
  read(body: JsonObject, fresh: Fresh): CallInput<Name>;
}

/** A route on which the authority builds and signs a record for an operator of standard tier. */
export function recordRoute<Name extends TrustCall>({
  command,
  read,
  ...described
}: RecordRoute<Name>): RouteEntry {
  return operatorRoute({
    ...described,
    method: 'POST',
    call: command,
    limit: 'ADMIN',
    created: 'always',
    input: (request, edge) => inputOf(() => read(request.body, freshFor(request, edge))),
  });
}
