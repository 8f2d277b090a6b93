/** Boundary decisions under an agreement (wire trust rules 4.4, 5.4). */

import type { Input, OperatorClaim } from '../../contract/claims.ts';
import { verifySignature } from '../../crypto/ed25519.ts';
import { jsonText } from '../../json/write.ts';
import type { AgreementRecord } from '../../records/agreement.ts';
import { type BoundaryRequest, buildBoundaryDecision } from '../../records/boundary-decision.ts';
import type { Handler } from '../engine/execute.ts';
import { accept } from '../engine/input.ts';
import { authenticateOperator } from '../enrolment/operator-keys.ts';
import { built, issuerOf } from './issuer.ts';

export interface DecideBoundary {
  readonly operator: OperatorClaim;
  readonly input: Input<{
    readonly agreement: AgreementRecord;
    readonly request: BoundaryRequest;
  }>;
}

export const decideBoundary: Handler<DecideBoundary> = (na, unit, command) => {
  authenticateOperator(na, unit, command.operator, 'standard');
  const { agreement, request } = accept(command.input);
  const result = buildBoundaryDecision(issuerOf(na, unit), agreement, request, verifySignature);
  const decision = built(result, 'boundary_eval_failed');
  unit.audit('boundary_decision_made', {
    decision_id: decision.decision_id,
    context_id: decision.context_id,
    agreement_id: decision.agreement_id,
    requested_capability: request.capability,
    authorized: decision.authorized,
  });
  return jsonText(decision);
};
