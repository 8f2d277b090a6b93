/** Boundary decisions under an agreement [trust-4-4], [trust-5-4]. */
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { buildBoundaryDecision } from '../../protocol/records/boundary-decision.ts';
import type { Handler } from '../engine/admission.ts';
import { built, issuerOf } from '../engine/issuer.ts';

export const decideBoundary: Handler<'decideBoundary'> = (na, unit, { agreement, request }) => {
  const result = buildBoundaryDecision(issuerOf(na, unit), agreement, request, verifySignature);
  const decision = built(result, 'boundary_eval_failed');
  unit.audit('boundary_decision_made', {
    decision_id: decision.decision_id,
    context_id: decision.context_id,
    agreement_id: decision.agreement_id,
    requested_capability: request.capability,
    authorized: decision.authorized,
  });
  return decision;
};
