/** Trust evidence: build, verify [trust-5-5], [trust-6-3]. */
import Type from 'typebox';
import { EvidenceVerdict } from '../../protocol/answers/verdicts.ts';
import * as operations from '../../protocol/api/evidence.ts';
import { demandPresent, Keys, omittable } from '../../protocol/api/trust-members.ts';
import { TrustEvidence } from '../../protocol/records/trust-evidence.ts';
import { judgeEvidence } from '../../protocol/verification.ts';
import type { RouteEntry } from '../route.ts';
import { operationRoutes } from './operations.ts';
import { logging, verificationRoute } from './verification-route.ts';

export const evidenceRoutes: readonly RouteEntry[] = [
  ...operationRoutes(operations),
  verificationRoute({
    path: '/trust-evidence/verify',
    summary: 'Verify trust evidence',
    description: 'Evidence of a block is accepted as evidence; it does not expire.',
    body: Type.Object({
      evidence: TrustEvidence,
      issuer_public_keys: Keys,
      expected_graph_digest: omittable(Type.String()),
    }),
    answer: EvidenceVerdict,
    refusals: ['missing_evidence', 'invalid_evidence'],
    event: 'trust_evidence_verified',
    judge(body, by) {
      demandPresent(body, ['evidence'], 'missing_evidence');
      return logging(judgeEvidence(body, by), 'evidence_id', 'accepted');
    },
  }),
];
