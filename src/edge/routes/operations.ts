/** Routes of declared operations: the input is read as declared, and the authority answers. */
import type { Operation } from '../../protocol/api/define.ts';
import type { Input } from '../../protocol/api/input.ts';
import { mapped } from '../../protocol/api/input.ts';
import type { OperationName } from '../../protocol/api/table.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { OperatorClaim } from '../../protocol/contract/claims.ts';
import { isOperatorRoute } from '../../protocol/route-description.ts';
import type { Edge } from '../edge.ts';
import { answerReply } from '../reply.ts';
import { operatorOf, type RouteEntry, type RouteRequest } from '../route.ts';
import { listReply } from './listing.ts';

export function operationRoutes(
  operations: {
    readonly [Name in OperationName]?: Operation;
  },
): readonly RouteEntry[] {
  return Object.entries(operations).map(([name, operation]) =>
    routeOf(name as OperationName, operation),
  );
}

function routeOf(name: OperationName, operation: Operation): RouteEntry {
  const { read, list, kind: _, access: __, ...described } = operation;
  return {
    ...described,
    call: name,
    async handle(request, edge) {
      const operator = isOperatorRoute(operation) ? operatorOf(request) : null;
      const input = read(request, contextOf(request, edge));
      if (list === undefined) return answerReply(await ask(name, operator, input, edge));
      let caller: OperatorClaim | 'admitted' | null = operator;
      return listReply(
        {
          ...list,
          page(page) {
            const asked = page.ok
              ? mapped(input, (filter) => Object.assign({}, filter, page.value))
              : page;
            const answer = ask(name, caller, asked, edge);
            if (operator !== null) caller = 'admitted';
            return answer;
          },
        },
        request,
      );
    },
  };
}

function ask(
  name: OperationName,
  operator: OperatorClaim | 'admitted' | null,
  input: Input<unknown>,
  { call }: Edge,
): Answer | Promise<Answer> {
  if (operator !== null) return call(name, { operator, input } as never);
  return input.ok ? call(name, input.value as never) : input;
}

function contextOf({ now }: RouteRequest, { runtime, settings }: Edge) {
  return { now, uuid: runtime.uuid, isAllowedRole: settings.isAllowedRole };
}
