/** Boundary decisions: decide, verify [trust-5-4], [trust-6-2]. */
import Type from 'typebox';
import { BoundaryVerdict } from '../../protocol/answers/verdicts.ts';
import * as operations from '../../protocol/api/boundary.ts';
import { demandPresent, Keys } from '../../protocol/api/trust-members.ts';
import { BoundaryDecision } from '../../protocol/records/boundary-decision.ts';
import { judgeDecision } from '../../protocol/verification.ts';
import type { RouteEntry } from '../route.ts';
import { operationRoutes } from './operations.ts';
import { logging, verificationRoute } from './verification-route.ts';

export const boundaryRoutes: readonly RouteEntry[] = [
  ...operationRoutes(operations),
  verificationRoute({
    path: '/boundary/verify',
    summary: 'Verify a boundary decision',
    body: Type.Object({
      decision: BoundaryDecision,
      operator_public_keys: Keys,
    }),
    answer: BoundaryVerdict,
    refusals: ['missing_decision', 'invalid_decision'],
    event: 'boundary_decision_verified',
    judge(body, by) {
      demandPresent(body, ['decision'], 'missing_decision');
      return logging(judgeDecision(body, by), 'decision_id', 'accepted');
    },
  }),
];
