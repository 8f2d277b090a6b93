/** Boundary decisions: decide, verify [trust-5-4], [trust-6-2]. */
import Type from 'typebox';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { BoundaryVerdict } from '../../protocol/answers/verdicts.ts';
import type { Taken } from '../../protocol/contract/calls.ts';
import { AgreementRecord, readAgreementRecord } from '../../protocol/records/agreement.ts';
import {
  BoundaryDecision,
  readBoundaryDecision,
  verifyBoundaryDecision,
} from '../../protocol/records/boundary-decision.ts';
import { type Fresh, Whole } from '../../protocol/records/record.ts';
import type { Edge } from '../edge.ts';
import type { Reply } from '../reply.ts';
import type { RouteEntry, RouteRequest } from '../route.ts';
import { recordRoute } from './record-route.ts';
import { Filled } from './scalars.ts';
import {
  candidateKeys,
  demand,
  demandPresent,
  freeFormOf,
  freshFor,
  integerOf,
  isMissing,
  refuse,
} from './trust-members.ts';
import { Keys, optional } from './trust-schemas.ts';
import { verdictReply } from './verdict.ts';

const Context = Type.Object({
  context_id: optional(Type.String({ description: 'reappears in the decision' })),
  parent_kind: optional(Type.String()),
  requester_sovereign_id: optional(Type.String()),
  provider_sovereign_id: optional(Type.String()),
  request_parameters: optional(Whole),
  context_freshness_seq: optional(Type.Integer({ minimum: 0 })),
});

export const boundaryRoutes: readonly RouteEntry[] = [
  recordRoute({
    path: '/admin/boundary/decide',
    summary: 'Decide whether a request stays within an agreement',
    description: 'A denial is a signed decision too. The agreement must carry our signature.',
    body: Type.Object({
      agreement: AgreementRecord,
      requested_capability: Filled,
      context: optional(Context),
    }),
    exampleNeeds: {
      what: 'an agreement that this authority signed',
      otherwise: 'boundary_eval_failed',
    },
    answer: BoundaryDecision,
    refusals: ['missing_boundary_fields', 'invalid_agreement', 'boundary_eval_failed'],
    command: 'decideBoundary',
    read: decideInput,
  }),
  {
    method: 'POST',
    path: '/boundary/verify',
    access: 'public',
    limit: 'VERIFY',
    summary: 'Verify a boundary decision',
    body: Type.Object({
      decision: BoundaryDecision,
      operator_public_keys: Keys,
    }),
    answer: BoundaryVerdict,
    refusals: ['missing_decision', 'invalid_decision'],
    handle: verify,
  },
];

function decideInput(body: JsonObject, fresh: Fresh): Taken<'decideBoundary'> {
  demandPresent(body, ['agreement', 'requested_capability'], 'missing_boundary_fields');
  const agreement = readAgreementRecord(body.agreement, fresh);
  if (agreement === null) return refuse('invalid_agreement', 'invalid_agreement');
  const context = isMissing(body.context) ? {} : body.context;
  demand(isJsonObject(context), 'missing_boundary_fields', 'invalid_context');
  const freshness = contextMember(context, 'context_freshness_seq', 0, integerOf);
  demand(freshness >= 0, 'missing_boundary_fields', 'invalid_context_freshness_seq');
  const contextId = contextMember(context, 'context_id', null, textOf);
  // The rest of the context becomes part of no record; only its types are checked.
  for (const name of ['parent_kind', 'requester_sovereign_id', 'provider_sovereign_id']) {
    contextMember(context, name, null, textOf);
  }
  contextMember(context, 'request_parameters', null, freeFormOf);
  const { requested_capability: capability } = body;
  const isText = typeof capability === 'string';
  demand(isText, 'missing_boundary_fields', 'invalid_requested_capability');
  return { agreement, request: { capability, contextId, freshnessSequence: freshness } };
}

/** A member of the context; an empty one is the fallback, one of another type is refused. */
function contextMember<T, F>(
  context: JsonObject,
  name: string,
  fallback: F,
  read: (value: JsonValue | undefined) => T | null,
): T | F {
  if (isMissing(context[name])) return fallback;
  return read(context[name]) ?? refuse('missing_boundary_fields', `invalid_${name}`);
}

function textOf(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

function verify(request: RouteRequest, edge: Edge): Reply {
  const { body, now } = request;
  demandPresent(body, ['decision'], 'missing_decision');
  const decision = readBoundaryDecision(body.decision, freshFor(request, edge));
  if (decision === null) return refuse('invalid_decision', 'invalid_decision');
  const keys = candidateKeys(body.operator_public_keys, edge, 'invalid_decision');
  const { decision_id } = decision;
  const verdict = verifyBoundaryDecision(decision, keys, now, verifySignature);
  const logged = { decision_id, accepted: verdict.accepted };
  return verdictReply(edge, 'boundary_decision_verified', { ...verdict, decision_id }, logged);
}
