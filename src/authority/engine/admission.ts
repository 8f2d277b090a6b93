/**
 * Admits callers to commands and queries: enforces the access rules from `protocol/contract/calls.ts` before a
 * handler runs. Handlers receive values. They never see headers, the results of checking headers, or a body that
 * failed its schema.
 */

import type { Writable } from '../../base/json/write.ts';
import type { Input } from '../../protocol/api/input.ts';
import {
  CALLS,
  type CallInput,
  type CallName,
  type NodeCallName,
  type OperatorCall,
  requiredTier,
} from '../../protocol/contract/calls.ts';
import type {
  NodeClaim,
  NodeProofVerdict,
  OperatorClaim,
  Tier,
} from '../../protocol/contract/claims.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { Sliced } from '../subjects/sliced.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { AsyncResult, Run } from './execute.ts';
import {
  NODE_PROOFS,
  type NodeProofRule,
  type ProvenRequest,
  withNodeProof,
} from './node-proof.ts';
import { authenticateOperator } from './operator-proof.ts';

type AccessOf<Name extends CallName> = (typeof CALLS)[Name]['access'];
type KindOf<Name extends CallName> = (typeof CALLS)[Name]['kind'];

/** Executes an admitted call and returns its answer. */
export type Handler<Name extends CallName> =
  KindOf<Name> extends 'query' | 'list'
    ? QueryHandler<CallInput<Name>>
    : AccessOf<Name> extends 'node'
      ? NodeHandler<CallInput<Name>>
      : AccessOf<Name> extends 'operator' | 'operator-privileged'
        ? OperatorHandler<CallInput<Name>>
        : CommandHandler<CallInput<Name>>;

export type CommandHandler<Given> = (na: Authority, unit: UnitOfWork, given: Given) => Writable;
/** Reads committed state as of `at`, in milliseconds since the epoch. */
export type QueryHandler<Given> = (
  na: Authority,
  given: Given,
  at: number,
) => Writable | Sliced | AsyncResult;
export type OperatorHandler<Given> = (
  na: Authority,
  unit: UnitOfWork,
  given: Given,
  operator: Pick<OperatorClaim, 'keyId' | 'remoteAddr'>,
) => Writable;
/** `proof` is the verdict on the node's proof, including its nonce. */
export type NodeHandler<Given> = (
  na: Authority,
  unit: UnitOfWork,
  given: Given,
  proof: NodeProofVerdict,
) => Writable;

export type Handlers = { readonly [Name in CallName]: Handler<Name> };

/** Wraps every call with its access check. A call without an access rule makes startup fail. */
export function admitCalls(handlers: Handlers): ReadonlyMap<string, Run<never>> {
  return new Map(
    Object.entries(handlers).map(([name, handler]) => [name, admit(name as CallName, handler)]),
  );
}

function admit(name: CallName, handler: Handlers[CallName]): Run<never> {
  const { access, kind } = CALLS[name] ?? {};
  switch (access) {
    case 'operator':
    case 'operator-privileged': {
      const tier = requiredTier(access);
      return kind === 'command'
        ? operatorCommand(handler as OperatorHandler<unknown>, tier)
        : operatorQuery(handler as QueryHandler<unknown>, tier);
    }
    case 'node':
      return nodeCommand(handler as NodeHandler<NodeCall>, NODE_PROOFS[name as NodeCallName]);
    case 'public':
    case 'internal':
      return kind === 'command'
        ? (handler as CommandHandler<never>)
        : readOnly(handler as QueryHandler<unknown>);
    default:
      throw new Error(`The call ${name} states no access`);
  }
}

function operatorCommand(
  handler: OperatorHandler<unknown>,
  tier: Tier,
): Run<OperatorCall<unknown>> {
  return (na, unit, { operator, input }) => {
    if (operator === 'admitted') throw new Error('A command is not a further page of a list');
    return (
      authenticateOperator(na, unit, operator, tier) ?? handler(na, unit, accepted(input), operator)
    );
  };
}

function operatorQuery(handler: QueryHandler<unknown>, tier: Tier): Run<OperatorCall<unknown>> {
  return (na, unit, { operator, input }) => {
    if (operator !== 'admitted') authenticateOperator(na, unit, operator, tier);
    return handler(na, accepted(input), unit.at);
  };
}

function readOnly(handler: QueryHandler<unknown>): Run<unknown> {
  return (na, unit, given) => handler(na, given, unit.at);
}

/** `node` is null if the proof is optional and missing. */
interface NodeCall {
  readonly node: NodeClaim | null;
  readonly certId?: string;
}

function nodeCommand(handler: NodeHandler<NodeCall>, rule: NodeProofRule): Run<NodeCall> {
  return (na, unit, call) =>
    isProven(call)
      ? withNodeProof(na, unit, call, rule, handler)
      : handler(na, unit, call, 'missing_fields');
}

function isProven(call: NodeCall): call is ProvenRequest {
  return call.node !== null;
}

/** The value of a body that passed its schema; otherwise throws the refusal that the edge determined. */
function accepted<Given>(input: Input<Given>): Given {
  if (input.ok) return input.value;
  throw new Refusal(input.refusal, input.details);
}
