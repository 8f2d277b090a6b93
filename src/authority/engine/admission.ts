/**
 * Admits callers to commands and queries: enforces the access rules from `protocol/contract/calls.ts` before a
 * handler runs. Handlers receive values. They never see headers, the results of checking headers, or a body that
 * failed its schema.
 */

import type { OperatorKeyRefusal } from '../../../machines/operator-key.ts';
import type { Refused } from '../../../machines/refused.ts';
import type { Writable } from '../../base/json/write.ts';
import type { Input } from '../../protocol/api/read.ts';
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
  OperatorProofVerdict,
  Tier,
} from '../../protocol/contract/claims.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { ReplayRule } from '../replay/replay.ts';
import { refusalIn } from '../subjects/kinds.ts';
import type { Sliced } from '../subjects/sliced.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { type AsyncResult, type Repeated, type Run, repeatedAnswer } from './execute.ts';
import {
  NODE_PROOFS,
  type NodeProofRule,
  type ProvenRequest,
  withNodeProof,
} from './node-proof.ts';
import { auditRefusal } from './refusal-audit.ts';

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

const REPLAY_RULE: ReplayRule = { scope: 'admin', window: false, durable: true };

/**
 * Operator authentication [service-operator-authentication], [core-2-3]. Admits or refuses an operator, checking in the
 * order of [core-2-3]. A genuine request spends its nonce even if it is then refused because of its tier or its body; a
 * request with a failed signature does not. For a repeated request, returns the first answer.
 */
function authenticateOperator(
  na: Authority,
  unit: UnitOfWork,
  claim: OperatorClaim,
  requiredTier: Tier,
): Repeated | null {
  const repeated =
    claim.verdict === 'valid' ? repeatedAnswer(na, unit, REPLAY_RULE, claim.keyId, claim) : null;
  // For a repeated request, only the key is checked again: a key that was revoked in the meantime gets no answer.
  const proof = repeated === null ? proofOf(na, claim) : 'valid';
  const refused = refusalIn(
    unit.send('operator-key', claim.keyId, { type: 'authenticate', proof, requiredTier }),
  );
  if (refused === null || refused.refusal === 'insufficient_operator_tier') {
    unit.actAs(claim.keyId);
    if (repeated !== null) return repeated;
    na.replay.spend(unit, REPLAY_RULE, claim.keyId, claim);
  }
  if (refused !== null) refuseOperator(na, unit, claim, requiredTier, refused);
  if (claim.signatureVersion === 1) {
    na.log('operator_signature_v1', { key_id: claim.keyId, scope: claim.scope });
  }
  return null;
}

/** The nonce is checked before the signature ([core-2-3-6] before [core-2-3-7]). */
function proofOf(na: Authority, claim: OperatorClaim): OperatorProofVerdict {
  const { verdict, keyId } = claim;
  const isJudged = ['valid', 'invalid_signature', 'v1_unbound'].includes(verdict);
  if (!isJudged) return verdict;
  const found = na.replay.check(REPLAY_RULE, keyId, claim, verdict === 'valid');
  return found === 'fresh' ? verdict : found;
}

function refuseOperator(
  na: Authority,
  unit: UnitOfWork,
  claim: OperatorClaim,
  requiredTier: Tier,
  { refusal, reason }: Refused<OperatorKeyRefusal>,
): never {
  const { keyId, scope, remoteAddr } = claim;
  const about = { key_id: keyId, scope, remote_addr: remoteAddr };
  if (refusal === 'insufficient_operator_tier') {
    unit.auditRefusal('admin_authz_denied', {
      ...about,
      holder_tier: na.subjects.current('operator-key', keyId)?.context.tier ?? 'none',
      required_tier: requiredTier,
      reason: refusal,
    });
  } else {
    const replayed = reason === 'nonce_replay' ? { nonce: claim.nonce } : {};
    auditRefusal(na, unit, 'admin_auth_failed', {
      ...about,
      reason: reason ?? refusal,
      ...replayed,
    });
  }
  throw new Refusal(refusal);
}
