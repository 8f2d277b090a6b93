/** Agreements: offer, counter, accept, verify [trust-5-1] to [trust-5-3], [trust-6-1]. */
import Type from 'typebox';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { demand, type RefusalName, refuse } from '../../base/refusal.ts';
import { AgreementVerdict } from '../../protocol/answers/verdicts.ts';
import { Filled } from '../../protocol/api/scalars.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import {
  AgreementRecord,
  CapabilityCounter,
  CapabilityOffer,
  type RequestedTerms,
  readCapabilityCounter,
  readCapabilityOffer,
} from '../../protocol/records/agreement.ts';
import { type Fresh, Whole } from '../../protocol/records/record.ts';
import { judgeAgreement } from '../../protocol/verification.ts';
import type { RouteEntry } from '../route.ts';
import {
  areCapabilities,
  Capabilities,
  demandPresent,
  freeFormOf,
  isCapabilityList,
  Keys,
  optional,
  RequestTimestamp,
  recordRoute,
  timestampOf,
  windowOf,
} from './trust-requests.ts';
import { logging, verificationRoute } from './verification-route.ts';

const Terms = {
  capabilities: Capabilities,
  scope: optional(Whole),
  valid_from: RequestTimestamp,
  valid_until: RequestTimestamp,
};

export const agreementRoutes: readonly RouteEntry[] = [
  recordRoute({
    path: '/admin/agreements/offer',
    summary: 'Offer capabilities to another sovereign',
    body: Type.Object({
      responder_sovereign_id: Filled,
      ...Terms,
      expires_at: RequestTimestamp,
    }),
    answer: CapabilityOffer,
    refusals: ['missing_offer_fields', 'invalid_timestamps', 'offer_rejected'],
    command: 'offerCapabilities',
    read: offerInput,
  }),
  recordRoute({
    path: '/admin/agreements/counter',
    summary: 'Answer an offer with narrower terms',
    body: Type.Object({ offer: CapabilityOffer, ...Terms }),
    exampleNeeds: { what: 'an offer that its maker signed', otherwise: 'counter_rejected' },
    answer: CapabilityCounter,
    refusals: ['missing_counter_fields', 'invalid_offer', 'counter_rejected'],
    command: 'counterOffer',
    read: counterInput,
  }),
  recordRoute({
    path: '/admin/agreements/accept',
    summary: 'Accept an offer, or the counter to our own',
    description: 'Give offer, or counter with original_offer; the counter wins when all are there.',
    body: Type.Object({
      offer: Type.Optional(CapabilityOffer),
      counter: Type.Optional(CapabilityCounter),
      original_offer: Type.Optional(CapabilityOffer),
    }),
    exampleNeeds: { what: 'an offer that its maker signed', otherwise: 'accept_rejected' },
    answer: AgreementRecord,
    refusals: ['missing_accept_fields', 'accept_rejected'],
    command: 'acceptAgreement',
    read: acceptInput,
  }),
  verificationRoute({
    path: '/agreements/verify',
    summary: 'Verify who signed an agreement',
    description: 'Keys left out are those of this authority; neither age nor evidence is judged.',
    body: Type.Object({
      agreement: AgreementRecord,
      offerer_public_keys: Keys,
      responder_public_keys: Keys,
    }),
    answer: AgreementVerdict,
    refusals: ['missing_agreement', 'invalid_agreement'],
    event: 'agreement_verified',
    judge(body, by) {
      demandPresent(body, ['agreement'], 'missing_agreement');
      return logging(judgeAgreement(body, by), 'agreement_id', 'accepted');
    },
  }),
];

function offerInput(body: JsonObject): CallInput<'offerCapabilities'> {
  demandPresent(body, ['responder_sovereign_id'], 'missing_offer_fields');
  const capabilities = capabilityList(body, 'missing_offer_fields');
  const window = windowOf(body, 'invalid_timestamps');
  const { text: expiresAt } = timestampOf(body, 'expires_at', 'invalid_timestamps');
  const { responder_sovereign_id: responder } = body;
  demand(typeof responder === 'string', 'offer_rejected', 'invalid_responder_sovereign_id');
  const terms = termsOf(body, capabilities, window, 'offer_rejected');
  return { responder, terms, expiresAt };
}

function counterInput(body: JsonObject, fresh: Fresh): CallInput<'counterOffer'> {
  demandPresent(body, ['offer'], 'missing_counter_fields');
  const capabilities = capabilityList(body, 'missing_counter_fields');
  const offer = readCapabilityOffer(body.offer, fresh) ?? refuse('invalid_offer', 'invalid_offer');
  const window = windowOf(body, 'missing_counter_fields');
  return { offer, terms: termsOf(body, capabilities, window, 'counter_rejected') };
}

/** Which members are present determines what is accepted, regardless of their values. */
function acceptInput(body: JsonObject, fresh: Fresh): CallInput<'acceptAgreement'> {
  const { offer, counter, original_offer: original } = body;
  if (counter !== undefined && original !== undefined) {
    return {
      counter:
        readCapabilityCounter(counter, fresh) ?? refuse('accept_rejected', 'invalid_counter'),
      offer: acceptable(original, fresh),
    };
  }
  demand(offer !== undefined, 'missing_accept_fields', 'missing_offer');
  return { counter: null, offer: acceptable(offer, fresh) };
}

function acceptable(offer: JsonValue, fresh: Fresh): CapabilityOffer {
  return readCapabilityOffer(offer, fresh) ?? refuse('accept_rejected', 'invalid_offer');
}

function capabilityList(body: JsonObject, refusal: RefusalName): readonly JsonValue[] {
  const { capabilities } = body;
  demand(isCapabilityList(capabilities), refusal, 'invalid_capabilities');
  return capabilities;
}

function termsOf(
  body: JsonObject,
  capabilities: readonly JsonValue[],
  window: Pick<RequestedTerms, 'validFrom' | 'validUntil'>,
  refusal: RefusalName,
): RequestedTerms {
  demand(areCapabilities(capabilities), refusal, 'invalid_capabilities');
  const scope = freeFormOf(body.scope) ?? refuse(refusal, 'invalid_scope');
  return { capabilities, scope, ...window };
}
