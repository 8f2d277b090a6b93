/**
 * Agreements between sovereigns: offers, counteroffers and acceptances [trust-4-2], [trust-4-3], [trust-5-1] to
 * [trust-5-3].
 */

import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import {
  type AgreementRecord,
  acceptCounter,
  acceptOffer,
  buildCounter,
  buildOffer,
  type CapabilityCounter,
  type CapabilityOffer,
  counterProblem,
  offerProblem,
} from '../../protocol/records/agreement.ts';
import { type Issuer, publicKeysOf } from '../../protocol/records/issuer.ts';
import { withinBudget } from '../../protocol/records/signature-search.ts';
import { buildTrustEvidence, type TrustEvidence } from '../../protocol/records/trust-evidence.ts';
import { type RefusalName, refuse } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { built, issuerOf } from '../engine/issuer.ts';
import { treatyKeysOf } from './treaties.ts';
import { evaluateTrust } from './trust-evaluation.ts';

/** Half of an edge's budget: about 10 ms, during which all other requests wait. */
const AUTHORITY_BUDGET = 5 * 1024 * 1024;

/** Verifies the signatures of one command, which share the budget. */
function checksOfCommand(): VerifySignature {
  return withinBudget(verifySignature, AUTHORITY_BUDGET);
}

export const offerCapabilities: Handler<'offerCapabilities'> = (na, unit, request) => {
  const issuer = issuerOf(na, unit);
  const evidence = evidenceAbout(na, issuer, issuer.sovereignId, request.responder_sovereign_id);
  const offer = buildOffer(issuer, request, evidence);
  unit.audit('capability_offer_built', {
    offer_id: offer.offer_id,
    offerer_sovereign_id: offer.offerer_sovereign_id,
    responder_sovereign_id: offer.responder_sovereign_id,
    capabilities: request.capabilities,
  });
  return offer;
};

export const counterOffer: Handler<'counterOffer'> = (na, unit, { offer, ...terms }) => {
  const issuer = issuerOf(na, unit);
  const evidence = evidenceForResponder(na, issuer, offer);
  const counter = built(buildCounter(issuer, offer, terms, evidence), 'counter_rejected');
  demandUsable(na, issuer, offer, checksOfCommand(), 'counter_rejected');
  unit.audit('capability_counter_built', {
    original_offer_id: offer.offer_id,
    counter_offer_id: counter.offer_id,
    offerer_sovereign_id: issuer.sovereignId,
    capabilities: terms.capabilities,
  });
  return counter;
};

export const acceptAgreement: Handler<'acceptAgreement'> = (na, unit, { offer, counter }) => {
  const issuer = issuerOf(na, unit);
  const verify = checksOfCommand();
  demandUsable(na, issuer, offer, verify, 'accept_rejected');
  const agreement =
    counter === null
      ? acceptOffer(issuer, offer, evidenceForResponder(na, issuer, offer))
      : finalize(na, issuer, offer, counter, verify);
  unit.audit('agreement_accepted', {
    agreement_id: agreement.agreement_id,
    offerer_sovereign_id: agreement.offerer_sovereign_id,
    responder_sovereign_id: agreement.responder_sovereign_id,
  });
  return agreement;
};

function finalize(
  na: Authority,
  issuer: Issuer,
  offer: CapabilityOffer,
  counter: CapabilityCounter,
  verify: VerifySignature,
): AgreementRecord {
  const { sovereignId, now } = issuer;
  const ourKeys = publicKeysOf(issuer);
  const responderKeys = [
    ...ourKeys,
    ...treatyKeysOf(na, counter.responder_sovereign_id, now, sovereignId),
  ];
  const known = { sovereignId, responderKeys, ourSignatures: ourKeys.length, now };
  const problem = counterProblem(counter, offer, known, verify);
  if (problem !== null) refuse('accept_rejected', problem);
  return acceptCounter(issuer, counter, offer);
}

/** Refuses unless the offer is genuine, current, addressed to us and not blocked. */
function demandUsable(
  na: Authority,
  issuer: Issuer,
  offer: CapabilityOffer,
  verify: VerifySignature,
  refusal: RefusalName,
): void {
  const { sovereignId, now } = issuer;
  const { offerer_sovereign_id: offerer } = offer;
  const offererKeys =
    offerer === sovereignId ? publicKeysOf(issuer) : treatyKeysOf(na, offerer, now, sovereignId);
  const problem = offerProblem(offer, { sovereignId, offererKeys, now }, verify);
  if (problem !== null) refuse(refusal, problem);
}

function evidenceForResponder(
  na: Authority,
  issuer: Issuer,
  offer: CapabilityOffer,
): TrustEvidence {
  return evidenceAbout(na, issuer, offer.responder_sovereign_id, offer.offerer_sovereign_id);
}

/** Evidence of how our graph evaluates `source`'s trust in `target`, signed in our own name. */
function evidenceAbout(
  na: Authority,
  issuer: Issuer,
  source: string,
  target: string,
): TrustEvidence {
  const decision = evaluateTrust(na.recognition, source, target, issuer.now);
  return buildTrustEvidence(issuer, decision, na.graph.digest.at(issuer.now));
}
