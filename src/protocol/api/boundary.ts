/** Boundary decisions [trust-5-4]. */
import Type from 'typebox';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import { AgreementRecord, readAgreementRecord } from '../records/agreement.ts';
import { BoundaryDecision } from '../records/boundary-decision.ts';
import { Whole } from '../records/record.ts';
import { demand, refuse } from '../refusals.ts';
import { operatorCommand } from './define.ts';
import { readBy } from './members.ts';
import { Filled } from './scalars.ts';
import { demandPresent, freeFormOf, integerOf, isMissing, omittable } from './trust-members.ts';

const PARTY = Type.String({ description: 'a party of the agreement' });

const Context = Type.Object({
  context_id: omittable(Type.String({ description: 'reappears in the decision' })),
  parent_kind: omittable(Type.String()),
  requester_sovereign_id: omittable(PARTY),
  provider_sovereign_id: omittable(PARTY),
  request_parameters: omittable(Whole),
  context_freshness_seq: omittable(Type.Integer({ minimum: 0 })),
});

export const decideBoundary = operatorCommand('POST /admin/boundary/decide', {
  created: 'always',
  summary: 'Decide whether a request stays within an agreement',
  description:
    'A denial is a signed decision too. Both parties must have signed the agreement, unless it answers an offer of this authority.',
  body: readBy(
    Type.Object({
      agreement: AgreementRecord,
      requested_capability: Filled,
      context: omittable(Context),
    }),
    ['missing_boundary_fields', 'invalid_agreement', 'boundary_eval_failed'],
    (body, fresh) => {
      demandPresent(body, ['agreement', 'requested_capability'], 'missing_boundary_fields');
      const agreement =
        readAgreementRecord(body.agreement, fresh) ??
        refuse('invalid_agreement', 'invalid_agreement');
      const context = isMissing(body.context) ? {} : body.context;
      demand(isJsonObject(context), 'missing_boundary_fields', 'invalid_context');
      const known = readContext(context);
      const { requested_capability } = body;
      const isText = typeof requested_capability === 'string';
      demand(isText, 'missing_boundary_fields', 'invalid_requested_capability');
      return { agreement, requested_capability, context: known };
    },
  ),
  exampleNeeds: {
    what: 'an agreement that this authority signed',
    otherwise: 'boundary_eval_failed',
  },
  answer: BoundaryDecision,
});

function readContext(context: JsonObject) {
  const context_freshness_seq = contextMember(context, 'context_freshness_seq', 0, integerOf);
  demand(context_freshness_seq >= 0, 'missing_boundary_fields', 'invalid_context_freshness_seq');
  const context_id = contextMember(context, 'context_id', null, textOf);
  // Only the types of these two are checked, because no part of a decision depends on them.
  contextMember(context, 'parent_kind', null, textOf);
  const requester_sovereign_id = contextMember(context, 'requester_sovereign_id', null, textOf);
  const provider_sovereign_id = contextMember(context, 'provider_sovereign_id', null, textOf);
  contextMember(context, 'request_parameters', null, freeFormOf);
  return { context_id, context_freshness_seq, requester_sovereign_id, provider_sovereign_id };
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
