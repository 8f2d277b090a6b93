/** Trust evidence from an operator's decision (wire trust rules 5.5): signed as stated, not judged. */

import type { Input, OperatorClaim } from '../../contract/claims.ts';
import { jsonText } from '../../json/write.ts';
import { buildTrustEvidence, type TrustDecision } from '../../records/trust-evidence.ts';
import type { Handler } from '../engine/execute.ts';
import { accept } from '../engine/input.ts';
import { authenticateOperator } from '../enrolment/operator-keys.ts';
import { issuerOf } from './issuer.ts';

export interface BuildEvidence {
  readonly operator: OperatorClaim;
  readonly input: Input<{
    readonly decision: TrustDecision;
    /** Null for that of our graph. */
    readonly graphDigest: string | null;
  }>;
}

export const buildEvidence: Handler<BuildEvidence> = (na, unit, command) => {
  authenticateOperator(na, unit, command.operator, 'standard');
  const { decision, graphDigest } = accept(command.input);
  const digest = graphDigest ?? na.graphDigest(unit.at);
  const evidence = buildTrustEvidence(issuerOf(na, unit), decision, digest);
  unit.audit('trust_evidence_built', {
    evidence_id: evidence.evidence_id,
    source_sovereign_id: evidence.source_sovereign_id,
    target_sovereign_id: evidence.target_sovereign_id,
    verdict: evidence.verdict,
  });
  return jsonText(evidence);
};
