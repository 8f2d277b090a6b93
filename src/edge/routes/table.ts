/** The complete HTTP API: every route appears in this table once. */
import { acceptAgreement, counterOffer, offerCapabilities } from '../../protocol/api/agreements.ts';
import * as attestations from '../../protocol/api/attestations.ts';
import * as boundary from '../../protocol/api/boundary.ts';
import {
  countContacts,
  listCertificates,
  readCertificate,
  revokeCertificate,
} from '../../protocol/api/certificates.ts';
import { assembleConsensus, castVote } from '../../protocol/api/consensus.ts';
import * as evidence from '../../protocol/api/evidence.ts';
import * as invites from '../../protocol/api/invites.ts';
import { describeNode } from '../../protocol/api/node-descriptions.ts';
import * as operatorKeys from '../../protocol/api/operator-keys.ts';
import { publishPolicy, readPolicyHistory, rollBackPolicy } from '../../protocol/api/policies.ts';
import * as verifications from '../../protocol/api/verifications.ts';
import { type Route, type RouteEntry, withAccess } from '../route.ts';
import { agentRoutes } from './agents.ts';
import { authorityKeyRoutes } from './authority-keys.ts';
import { dashboardRoutes } from './dashboard.ts';
import { dataUsageRoutes } from './data-usage.ts';
import { detailsPageRoutes } from './details-pages.ts';
import { disclosureRoutes } from './disclosure.ts';
import { documentRoutes } from './documents.ts';
import { enrollmentRoutes } from './enrollment.ts';
import { eventRoutes } from './events.ts';
import { graphRoutes } from './graph.ts';
import { healthRoutes } from './health.ts';
import { historyRoutes } from './history.ts';
import { operationRoutes } from './operations.ts';
import { operatorPageRoutes } from './operator-pages.ts';
import { pageRoutes, referenceRoutes } from './pages.ts';
import { recognitionRoutes } from './recognition.ts';
import { nodeCountRoutes } from './roster.ts';
import { treatyRoutes } from './treaties.ts';
import { trustPageRoutes } from './trust-page.ts';
import { verificationRoutes } from './verification-route.ts';

const ENTRIES: readonly RouteEntry[] = [
  ...pageRoutes,
  ...healthRoutes,
  ...documentRoutes,
  ...enrollmentRoutes,
  ...nodeCountRoutes,
  ...historyRoutes,
  ...operationRoutes(invites),
  ...operationRoutes({ describeNode }),
  ...operationRoutes({ listCertificates, countContacts, readCertificate, revokeCertificate }),
  ...operationRoutes(operatorKeys),
  ...authorityKeyRoutes,
  ...operationRoutes({ publishPolicy, rollBackPolicy, readPolicyHistory }),
  ...eventRoutes,
  ...agentRoutes,
  ...operationRoutes(attestations),
  ...treatyRoutes,
  ...recognitionRoutes,
  ...verificationRoutes(
    verifications.verifyAttestation,
    verifications.verifyAttestationWithTreaty,
    verifications.verifyTreaty,
  ),
  ...operationRoutes({ offerCapabilities, counterOffer, acceptAgreement }),
  ...verificationRoutes(verifications.verifyAgreement),
  ...operationRoutes(boundary),
  ...verificationRoutes(verifications.verifyDecision),
  ...operationRoutes(evidence),
  ...verificationRoutes(verifications.verifyEvidence),
  ...disclosureRoutes,
  ...verificationRoutes(verifications.verifyMembership),
  ...operationRoutes({ castVote, assembleConsensus }),
  ...verificationRoutes(verifications.verifyConsensus),
  ...dataUsageRoutes,
  ...verificationRoutes(verifications.verifyIntent),
  ...graphRoutes,
  ...trustPageRoutes,
  ...dashboardRoutes,
  ...operatorPageRoutes,
  ...detailsPageRoutes,
  ...referenceRoutes,
];

export const ROUTES: readonly Route[] = ENTRIES.map(withAccess);
