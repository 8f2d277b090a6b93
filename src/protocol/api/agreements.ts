/** Agreements: offer, counter, accept [trust-5-1] to [trust-5-3]. */
import Type from 'typebox';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import {
  AgreementRecord,
  CapabilityCounter,
  CapabilityOffer,
  readCapabilityCounter,
  readCapabilityOffer,
} from '../records/agreement.ts';
import { type Fresh, Whole } from '../records/record.ts';
import { demand, type RefusalName, refuse } from '../refusals.ts';
import { operatorCommand } from './define.ts';
import { readBy } from './members.ts';
import { Filled } from './scalars.ts';
import {
  areCapabilities,
  Capabilities,
  demandPresent,
  freeFormOf,
  isCapabilityList,
  omittable,
  RequestTimestamp,
  timestampOf,
  windowOf,
} from './trust-members.ts';

const Terms = {
  capabilities: Capabilities,
  scope: omittable(Whole),
  valid_from: RequestTimestamp,
  valid_until: RequestTimestamp,
};

export const offerCapabilities = operatorCommand('POST /admin/agreements/offer', {
  created: 'always',
  summary: 'Offer capabilities to another sovereign',
  body: readBy(
    Type.Object({ responder_sovereign_id: Filled, ...Terms, expires_at: RequestTimestamp }),
    ['missing_offer_fields', 'invalid_timestamps', 'offer_rejected'],
    (body) => {
      demandPresent(body, ['responder_sovereign_id'], 'missing_offer_fields');
      const capabilities = capabilityList(body, 'missing_offer_fields');
      const window = windowOf(body, 'invalid_timestamps');
      const { text: expires_at } = timestampOf(body, 'expires_at', 'invalid_timestamps');
      const { responder_sovereign_id } = body;
      const isText = typeof responder_sovereign_id === 'string';
      demand(isText, 'offer_rejected', 'invalid_responder_sovereign_id');
      const terms = { ...readTerms(body, capabilities, 'offer_rejected'), ...window };
      return { responder_sovereign_id, ...terms, expires_at };
    },
  ),
  answer: CapabilityOffer,
});

export const counterOffer = operatorCommand('POST /admin/agreements/counter', {
  created: 'always',
  summary: 'Answer an offer with narrower terms',
  body: readBy(
    Type.Object({ offer: CapabilityOffer, ...Terms }),
    ['missing_counter_fields', 'invalid_offer', 'counter_rejected'],
    (body, fresh) => {
      demandPresent(body, ['offer'], 'missing_counter_fields');
      const capabilities = capabilityList(body, 'missing_counter_fields');
      const offer =
        readCapabilityOffer(body.offer, fresh) ?? refuse('invalid_offer', 'invalid_offer');
      const window = windowOf(body, 'missing_counter_fields');
      return { offer, ...readTerms(body, capabilities, 'counter_rejected'), ...window };
    },
  ),
  exampleNeeds: { what: 'an offer that its maker signed', otherwise: 'counter_rejected' },
  answer: CapabilityCounter,
});

export const acceptAgreement = operatorCommand('POST /admin/agreements/accept', {
  created: 'always',
  summary: 'Accept an offer, or the counter to our own',
  description: 'Give offer, or counter with original_offer; the counter wins when all are there.',
  body: readBy(
    Type.Object({
      offer: Type.Optional(CapabilityOffer),
      counter: Type.Optional(CapabilityCounter),
      original_offer: Type.Optional(CapabilityOffer),
    }),
    ['missing_accept_fields', 'accept_rejected'],
    // Which members are present determines what is accepted, regardless of their values.
    ({ offer, counter, original_offer: original }, fresh) => {
      if (counter !== undefined && original !== undefined) {
        return {
          counter:
            readCapabilityCounter(counter, fresh) ?? refuse('accept_rejected', 'invalid_counter'),
          offer: acceptable(original, fresh),
        };
      }
      demand(offer !== undefined, 'missing_accept_fields', 'missing_offer');
      return { counter: null, offer: acceptable(offer, fresh) };
    },
  ),
  exampleNeeds: { what: 'an offer that its maker signed', otherwise: 'accept_rejected' },
  answer: AgreementRecord,
});

function acceptable(offer: JsonValue, fresh: Fresh): CapabilityOffer {
  return readCapabilityOffer(offer, fresh) ?? refuse('accept_rejected', 'invalid_offer');
}

function capabilityList({ capabilities }: JsonObject, refusal: RefusalName) {
  demand(isCapabilityList(capabilities), refusal, 'invalid_capabilities');
  return capabilities;
}

function readTerms(body: JsonObject, capabilities: readonly JsonValue[], refusal: RefusalName) {
  demand(areCapabilities(capabilities), refusal, 'invalid_capabilities');
  return { capabilities, scope: freeFormOf(body.scope) ?? refuse(refusal, 'invalid_scope') };
}
