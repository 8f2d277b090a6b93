/**
 * Agreements: offer, counter, accept [trust-5-1] to [trust-5-3]; and selective disclosure of their capabilities: commit,
 * nullify, prove [trust-5-6], [trust-5-7], [trust-6-4].
 */
import Type from 'typebox';
import { isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import {
  AgreementRecord,
  CapabilityCounter,
  CapabilityOffer,
  readAgreementRecord,
  readCapabilityCounter,
  readCapabilityOffer,
} from '../records/agreement.ts';
import {
  CapabilityCommitment,
  CapabilityMembershipProof,
  CapabilityNullifier,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
} from '../records/capability-disclosure.ts';
import { type Fresh, MAX_CAPABILITIES, Whole } from '../records/record.ts';
import { demand, type RefusalName, refuse } from '../refusals.ts';
import { operatorCommand, publicComputation } from './define.ts';
import { Filled, readBy } from './members.ts';
import {
  Capabilities,
  capabilityListOf,
  demandPresent,
  freeFormOf,
  memberOf,
  omittable,
  RequestTimestamp,
  textOf,
  textsOf,
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
      memberOf(body, 'capabilities', capabilityListOf, 'missing_offer_fields');
      const window = windowOf(body, 'invalid_timestamps');
      const { text: expires_at } = memberOf(body, 'expires_at', timestampOf, 'invalid_timestamps');
      const responder = memberOf(body, 'responder_sovereign_id', textOf, 'offer_rejected');
      const terms = { ...readTerms(body, 'offer_rejected'), ...window };
      return { responder_sovereign_id: responder, ...terms, expires_at };
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
      memberOf(body, 'capabilities', capabilityListOf, 'missing_counter_fields');
      const offer = memberOf(body, 'offer', readCapabilityOffer, 'invalid_offer', fresh);
      const window = windowOf(body, 'missing_counter_fields');
      return { offer, ...readTerms(body, 'counter_rejected'), ...window };
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
    (body, fresh) => {
      const { offer, original_offer: original } = body;
      if (body.counter !== undefined && original !== undefined) {
        const counter = memberOf(body, 'counter', readCapabilityCounter, 'accept_rejected', fresh);
        return { counter, offer: acceptable(original, fresh) };
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

function readTerms(body: JsonObject, refusal: RefusalName) {
  const capabilities = memberOf(body, 'capabilities', textsOf, refusal);
  demand(!capabilities.includes(''), refusal, 'invalid_capabilities');
  return { capabilities, scope: memberOf(body, 'scope', freeFormOf, refusal) };
}

export const commitCapabilities = operatorCommand('POST /admin/disclosure/commit', {
  created: 'always',
  summary: 'Commit to a set of capabilities of an agreement',
  body: readBy(
    Type.Object({ capabilities: Capabilities, agreement: AgreementRecord }),
    ['missing_commit_fields', 'commit_failed'],
    (body, fresh) => {
      const refusal = 'missing_commit_fields';
      memberOf(body, 'capabilities', capabilityListOf, refusal);
      demandPresent(body, ['agreement'], refusal);
      const agreement = memberOf(body, 'agreement', readAgreementRecord, refusal, fresh);
      return { agreement, capabilities: memberOf(body, 'capabilities', textsOf, 'commit_failed') };
    },
  ),
  exampleNeeds: { what: 'an agreement that this authority signed', otherwise: 'commit_failed' },
  answer: CapabilityCommitment,
});

export const proveMembership = publicComputation('POST /disclosure/prove', {
  limit: 'VERIFY',
  summary: 'Prove that a capability is in a list',
  description: 'Computed from the request alone: a list that was not committed to fails later.',
  body: readBy(
    Type.Object({
      capability: Filled,
      capabilities: Type.Array(Type.String(), { maxItems: MAX_CAPABILITIES }),
      commitment: CapabilityCommitment,
      prover_sovereign_id: Filled,
    }),
    ['missing_prove_fields', 'invalid_commitment', 'prove_failed'],
    (body, fresh) => {
      const { capabilities } = body;
      const names = ['capability', 'commitment', 'prover_sovereign_id'];
      demandPresent(body, names, 'missing_prove_fields');
      const isBounded = isList(capabilities) && capabilities.length <= MAX_CAPABILITIES;
      demand(isBounded, 'missing_prove_fields', 'invalid_capabilities');
      const refusal = 'invalid_commitment';
      return {
        commitment: memberOf(body, 'commitment', readCapabilityCommitment, refusal, fresh),
        capabilities: memberOf(body, 'capabilities', textsOf, 'prove_failed'),
        capability: memberOf(body, 'capability', textOf, 'prove_failed'),
        prover_sovereign_id: memberOf(body, 'prover_sovereign_id', textOf, 'prove_failed'),
      };
    },
  ),
  answer: CapabilityMembershipProof,
});

export const nullifyProof = operatorCommand('POST /admin/disclosure/nullifier', {
  created: 'always',
  summary: 'Issue the one nullifier of a membership proof',
  body: readBy(
    Type.Object({ proof: CapabilityMembershipProof }),
    ['missing_proof', 'nullifier_failed'],
    (body, fresh) => {
      demandPresent(body, ['proof'], 'missing_proof');
      return {
        proof: memberOf(body, 'proof', readCapabilityMembershipProof, 'missing_proof', fresh),
      };
    },
  ),
  // Of "read" among "audit", "read" and "write".
  example: {
    proof: {
      proof_id: 'proof-1',
      commitment_id: 'commitment-1',
      leaf_hash: '3316348dbadfb7b11c7c2ea235949419e23f9fa898ad2c198f999617912a9925',
      merkle_path: [
        {
          sibling_hash: 'b81f37a043a6f767e7c94d105f4bd31282f3ecc20680bb9d09bd93461cf4c863',
          is_left: true,
        },
        {
          sibling_hash: '5d0ba98123048fa29ff1b7149e203fc07f907ea3e0b780e56df3863f3a7a9843',
          is_left: false,
        },
      ],
    },
  },
  answer: CapabilityNullifier,
});
