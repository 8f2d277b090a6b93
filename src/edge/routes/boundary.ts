/** Boundary decisions: decide, verify [trust-5-4], [trust-6-2]. */
import Type from 'typebox';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { demand, refuse } from '../../base/refusal.ts';
import { BoundaryVerdict } from '../../protocol/answers/verdicts.ts';
import { Filled } from '../../protocol/api/scalars.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import { AgreementRecord, readAgreementRecord } from '../../protocol/records/agreement.ts';
import { BoundaryDecision } from '../../protocol/records/boundary-decision.ts';
import { type Fresh, Whole } from '../../protocol/records/record.ts';
import { judgeDecision } from '../../protocol/verification.ts';
import type { RouteEntry } from '../route.ts';
import {
  demandPresent,
  freeFormOf,
  integerOf,
  isMissing,
  Keys,
  optional,
  recordRoute,
} from './trust-requests.ts';
import { logging, verificationRoute } from './verification-route.ts';

const PARTY = Type.String({ description: 'a party of the agreement' });

const Context = Type.Object({
  context_id: optional(Type.String({ description: 'reappears in the decision' })),
  parent_kind: optional(Type.String()),
  requester_sovereign_id: optional(PARTY),
  provider_sovereign_id: optional(PARTY),
  request_parameters: optional(Whole),
  context_freshness_seq: optional(Type.Integer({ minimum: 0 })),
});

export const boundaryRoutes: readonly RouteEntry[] = [
  recordRoute({
    path: '/admin/boundary/decide',
    summary: 'Decide whether a request stays within an agreement',
    description:
      'A denial is a signed decision too. Both parties must have signed the agreement, unless it answers an offer of this authority.',
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
  verificationRoute({
    path: '/boundary/verify',
    summary: 'Verify a boundary decision',
    body: Type.Object({
      decision: BoundaryDecision,
      operator_public_keys: Keys,
    }),
    answer: BoundaryVerdict,
    refusals: ['missing_decision', 'invalid_decision'],
    event: 'boundary_decision_verified',
    judge(body, by) {
      demandPresent(body, ['decision'], 'missing_decision');
      return logging(judgeDecision(body, by), 'decision_id', 'accepted');
    },
  }),
];

function decideInput(body: JsonObject, fresh: Fresh): CallInput<'decideBoundary'> {
  demandPresent(body, ['agreement', 'requested_capability'], 'missing_boundary_fields');
  const agreement =
    readAgreementRecord(body.agreement, fresh) ?? refuse('invalid_agreement', 'invalid_agreement');
  const context = isMissing(body.context) ? {} : body.context;
  demand(isJsonObject(context), 'missing_boundary_fields', 'invalid_context');
  const freshness = contextMember(context, 'context_freshness_seq', 0, integerOf);
  demand(freshness >= 0, 'missing_boundary_fields', 'invalid_context_freshness_seq');
  const contextId = contextMember(context, 'context_id', null, textOf);
  // Only the types of these two are checked, because no part of a decision depends on them.
  contextMember(context, 'parent_kind', null, textOf);
  const between = ['requester_sovereign_id', 'provider_sovereign_id'].flatMap(
    (name) => contextMember(context, name, null, textOf) ?? [],
  );
  contextMember(context, 'request_parameters', null, freeFormOf);
  const { requested_capability: capability } = body;
  const isText = typeof capability === 'string';
  demand(isText, 'missing_boundary_fields', 'invalid_requested_capability');
  return { agreement, request: { capability, contextId, freshnessSequence: freshness, between } };
}

/** A member of the context; the fallback if it is empty. Refuses a member of the wrong type. */
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
