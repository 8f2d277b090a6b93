/** The whole HTTP surface: every route there is stands in this table, once. */
import type { Route } from '../http/route.ts';
import { agentRoutes } from './agents.ts';
import { attestationRoutes } from './attestations.ts';
import { documentRoutes } from './documents.ts';
import { enrolmentRoutes } from './enrolment.ts';
import { graphRoutes } from './graph.ts';
import { healthRoutes } from './health.ts';
import { operatorRoutes } from './operators.ts';
import { policyRoutes } from './policies.ts';
import { recognitionRoutes } from './recognition.ts';
import { referenceRoutes } from './reference.ts';
import { treatyRoutes } from './treaties.ts';
import { verificationRoutes } from './verification.ts';

export const ROUTES: readonly Route[] = [
  ...healthRoutes,
  ...documentRoutes,
  ...enrolmentRoutes,
  ...operatorRoutes,
  ...policyRoutes,
  ...agentRoutes,
  ...attestationRoutes,
  ...treatyRoutes,
  ...recognitionRoutes,
  ...verificationRoutes,
  ...graphRoutes,
  ...referenceRoutes,
];
