/**
 * Agreements between sovereigns: offers, counteroffers and acceptances [trust-4-2], [trust-4-3], [trust-5-1] to
 * [trust-5-3].
 */

import { verifySignature } from '../../base/crypto/ed25519.ts';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { formatInstant } from '../../base/timestamp.ts';
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
import { withinBudget } from '../../protocol/records/signed-record.ts';
import {
  buildTrustEvidence,
  type TrustDecision,
  type TrustEvidence,
  type TrustSignal,
  type Verdict,
} from '../../protocol/records/trust-evidence.ts';
import { type RefusalName, refuse } from '../../protocol/refusals.ts';
import type { EdgeRow } from '../../protocol/rows/graph.ts';
import { beginningOf } from '../audit/audit.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { built, issuerOf } from '../engine/issuer.ts';
import type { RecognitionIndex } from './recognition-index.ts';
import { treatyKeysOf } from './treaties.ts';
import { findTrustPath } from './trust-path.ts';

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
  // Ours come last: there are more with each change of the key, and a search tries at most 32.
  const responderKeys = [
    ...treatyKeysOf(na, counter.responder_sovereign_id, now, sovereignId),
    ...publicKeysOf(issuer),
  ];
  const ourSignatures = issuer.previous ? 2 : 1;
  const known = { sovereignId, responderKeys, ourSignatures, now };
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

/** Severities, most serious first. */
const SEVERITIES = ['block', 'escalate', 'warn'] as const satisfies readonly Verdict[];
/** Limits the size of evidence, because a feed may revoke any number of attestations. */
const MAX_REVOCATION_SIGNALS = 256;
/** Names and ids that others have chosen may be longer. */
const MAX_SHOWN_LENGTH = 40;

export function evaluateTrust(
  index: RecognitionIndex,
  source: string,
  target: string,
  now: number,
): TrustDecision {
  const { trusted, reason, path, hop_count } = findTrustPath(index, source, target, now);
  const findings = trusted ? [...pressure(index, source, path), ...expiring(path)] : [];
  const signals = findings.length > 0 ? findings : [ownSignal(trusted, reason)];
  const gravest = SEVERITIES.find((severity) => findings.some((f) => f.severity === severity));
  return {
    source_sovereign_id: source,
    target_sovereign_id: target,
    verdict: gravest ?? (trusted ? 'allow' : 'block'),
    reason: findings.find(({ severity }) => severity === gravest)?.code ?? reason,
    requested_roles: [],
    trusted,
    hop_count,
    signals,
    evaluated_at: formatInstant(now),
  };
}

function ownSignal(trusted: boolean, code: string): TrustSignal {
  if (trusted) return { code, severity: 'info', detail: 'a path of active treaties leads there' };
  return { code, severity: 'block', detail: 'no path of active treaties leads there' };
}

/** One signal for each attestation that a sovereign on the path has revoked. */
function pressure(
  index: RecognitionIndex,
  source: string,
  path: readonly EdgeRow[],
): TrustSignal[] {
  const signals: TrustSignal[] = [];
  for (const issuer of [source, ...path.map(({ to }) => to)]) {
    for (const { id } of index.revokedBy(issuer)) {
      if (signals.length === MAX_REVOCATION_SIGNALS) return signals;
      signals.push({
        code: 'recognition_under_revocation_pressure',
        severity: 'escalate',
        detail: `${shown(issuer)} has revoked attestation ${shown(id)}`,
      });
    }
  }
  return signals;
}

function shown(text: string): string {
  return text.length <= MAX_SHOWN_LENGTH ? text : `${beginningOf(text, MAX_SHOWN_LENGTH)}…`;
}

function expiring(path: readonly EdgeRow[]): TrustSignal[] {
  return path
    .filter(({ lifecycle_state }) => lifecycle_state === 'expiring_soon')
    .map(({ treaty_id, expires_at }) => ({
      code: 'treaty_expiring_soon',
      severity: 'warn',
      detail: `treaty ${treaty_id} expires at ${expires_at}`,
    }));
}
