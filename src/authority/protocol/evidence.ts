/** Trust evidence from an operator's decision [trust-5-5]: signed as stated, without evaluation. */
import { buildTrustEvidence } from '../../protocol/records/trust-evidence.ts';
import type { Handler } from '../engine/admission.ts';
import { issuerOf } from '../engine/issuer.ts';

export const buildEvidence: Handler<'buildEvidence'> = (na, unit, { decision, graphDigest }) => {
  const digest = graphDigest ?? na.graphDigest.at(unit.at);
  const evidence = buildTrustEvidence(issuerOf(na, unit), decision, digest);
  unit.audit('trust_evidence_built', {
    evidence_id: evidence.evidence_id,
    source_sovereign_id: evidence.source_sovereign_id,
    target_sovereign_id: evidence.target_sovereign_id,
    verdict: evidence.verdict,
  });
  return evidence;
};
