/** Routes of declared operations: the input is read as declared, and the authority answers. */
import type { InputOf, Operation } from '../../protocol/api/define.ts';
import { type Input, mapped, refused } from '../../protocol/api/input.ts';
import type { Api, OperationName } from '../../protocol/api/table.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { Prepared } from '../../protocol/contract/calls.ts';
import type { OperatorClaim } from '../../protocol/contract/claims.ts';
import { isOperatorRoute } from '../../protocol/route-description.ts';
import type { Edge } from '../edge.ts';
import { answerReply } from '../reply.ts';
import { operatorOf, type RouteEntry, type RouteRequest } from '../route.ts';
import { listReply } from './listing.ts';

/** Works out of what an operator has sent what the authority decides by. */
export type Preparation<Name extends keyof Prepared> = (
  sent: InputOf<Api[Name]>,
  request: RouteRequest,
  edge: Edge,
) => Promise<Input<Prepared[Name]>>;

type AnyPreparation = (sent: never, request: RouteRequest, edge: Edge) => Promise<Input<unknown>>;

export function operationRoutes(
  operations: {
    readonly [Name in OperationName]?: Operation;
  },
  preparations: { readonly [Name in keyof Prepared]?: Preparation<Name> } = {},
): readonly RouteEntry[] {
  const prepared: { readonly [name: string]: AnyPreparation } = preparations;
  return Object.entries(operations).map(([name, operation]) =>
    operationRoute(name as OperationName, operation, prepared[name]),
  );
}

export function operationRoute(
  name: OperationName,
  operation: Operation,
  prepare?: AnyPreparation,
): RouteEntry {
  const { read, list, kind: _, access: __, ...described } = operation;
  return {
    ...described,
    call: name,
    async handle(request, edge) {
      const operator = isOperatorRoute(operation) ? operatorOf(request) : null;
      const input =
        prepare === undefined
          ? read(request, contextOf(request, edge))
          : await preparedInput(operation, prepare, request, edge);
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

async function preparedInput(
  { read }: Operation,
  prepare: AnyPreparation,
  request: RouteRequest,
  edge: Edge,
): Promise<Input<unknown>> {
  // Nothing is worked out for a sender who will not be admitted.
  if (operatorOf(request).verdict !== 'valid') return refused('bad_request');
  const sent = read(request, contextOf(request, edge));
  return sent.ok ? prepare(sent.value as never, request, edge) : sent;
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
  const { isAllowedRole, maxFeedEntries } = settings;
  return { now, uuid: runtime.uuid, isAllowedRole, maxFeedEntries };
}
