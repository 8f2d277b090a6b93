/**
 * Agreements: offer, counter, accept [trust-5-1] to [trust-5-3]; and selective disclosure of their capabilities: commit,
 * nullify, prove [trust-5-6], [trust-5-7], [trust-6-4].
 */
import Type from 'typebox';
import { areTexts, isList, type JsonObject, type JsonValue } from '../../base/json/value.ts';
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

export const commitCapabilities = operatorCommand('POST /admin/disclosure/commit', {
  created: 'always',
  summary: 'Commit to a set of capabilities of an agreement',
  body: readBy(
    Type.Object({ capabilities: Capabilities, agreement: AgreementRecord }),
    ['missing_commit_fields', 'commit_failed'],
    (body, fresh) => {
      const { capabilities } = body;
      const isThere = isCapabilityList(capabilities);
      demand(isThere, 'missing_commit_fields', 'invalid_capabilities');
      demandPresent(body, ['agreement'], 'missing_commit_fields');
      const agreement =
        readAgreementRecord(body.agreement, fresh) ??
        refuse('missing_commit_fields', 'invalid_agreement');
      demand(areTexts(capabilities), 'commit_failed', 'invalid_capabilities');
      return { agreement, capabilities };
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
      const { capability, capabilities, prover_sovereign_id } = body;
      const names = ['capability', 'commitment', 'prover_sovereign_id'];
      demandPresent(body, names, 'missing_prove_fields');
      const isBounded = isList(capabilities) && capabilities.length <= MAX_CAPABILITIES;
      demand(isBounded, 'missing_prove_fields', 'invalid_capabilities');
      const commitment =
        readCapabilityCommitment(body.commitment, fresh) ??
        refuse('invalid_commitment', 'invalid_commitment');
      demand(areTexts(capabilities), 'prove_failed', 'invalid_capabilities');
      demand(typeof capability === 'string', 'prove_failed', 'invalid_capability');
      const isName = typeof prover_sovereign_id === 'string';
      demand(isName, 'prove_failed', 'invalid_prover_sovereign_id');
      return { capability, capabilities, commitment, prover_sovereign_id };
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
      const proof = readCapabilityMembershipProof(body.proof, fresh);
      return { proof: proof ?? refuse('missing_proof', 'invalid_proof') };
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
