/** Every command and query with its handler. `protocol/contract/calls.ts` says who may call it. */
import type { Handlers } from './engine/admission.ts';
import {
  countAgents,
  listAgents,
  readAgent,
  registerAgent,
  removeAgent,
} from './enrollment/agents.ts';
import {
  listCertificates,
  readCertificate,
  readCertificatePage,
} from './enrollment/certificate-list.ts';
import { heartbeat, join, renew } from './enrollment/certificates.ts';
import {
  listInvites,
  readInvitePage,
  withdrawInvite,
  withdrawInviteBatch,
} from './enrollment/invite-list.ts';
import { createInvites } from './enrollment/invites.ts';
import {
  addOperatorKey,
  listOperatorKeys,
  revokeOperatorKey,
  setOperatorKeyTier,
} from './enrollment/operator-keys.ts';
import {
  ensurePolicy,
  publishPolicy,
  readPolicyHistory,
  readPolicyPage,
  rollBackPolicy,
} from './enrollment/policies.ts';
import { revokeCertificate } from './enrollment/revocations.ts';
import { closeRoster, countNodes, openRoster, readRoster } from './enrollment/roster.ts';
import { acceptAgreement, counterOffer, offerCapabilities } from './protocol/agreements.ts';
import {
  assembleConsensus,
  buildEvidence,
  castVote,
  commitCapabilities,
  createLicensePolicy,
  decideBoundary,
  declareIntent,
  nullifyProof,
} from './protocol/records.ts';
import { refreshDashboard } from './publication/dashboard.ts';
import { openEvents, readEvents } from './publication/event-calls.ts';
import { refreshGraph, trustPath } from './publication/graph.ts';
import { awaitPublications, checkReadiness, readCounts } from './publication/health.ts';
import { readHorizon } from './publication/horizon.ts';
import {
  refreshBulletin,
  refreshCrl,
  refreshFeed,
  refreshForeignFeed,
} from './publication/signed-lists.ts';
import { openWebhooks, saveWebhooks } from './publication/webhook-cursors.ts';
import {
  issueAttestation,
  listAttestations,
  readAttestation,
  revokeAttestation,
} from './recognition/attestations.ts';
import { importFeed, treatyKeys } from './recognition/feed-import.ts';
import { readRecognitionPolicy, setRecognitionPolicy } from './recognition/recognition-policy.ts';
import { issueTreaty, listTreaties, readTreaty, revokeTreaty } from './recognition/treaties.ts';
import { runTrustCycle } from './recognition/trust-cycle.ts';
import { askRevocations, considerTrust } from './recognition/trust-questions.ts';

export const HANDLERS: Handlers = {
  offerCapabilities,
  counterOffer,
  acceptAgreement,
  decideBoundary,
  buildEvidence,
  commitCapabilities,
  nullifyProof,
  castVote,
  assembleConsensus,
  createLicensePolicy,
  declareIntent,
  join,
  heartbeat,
  renew,
  createInvites,
  listInvites,
  readInvitePage,
  withdrawInvite,
  withdrawInviteBatch,
  listCertificates,
  readCertificatePage,
  readCertificate,
  revokeCertificate,
  listOperatorKeys,
  addOperatorKey,
  setOperatorKeyTier,
  revokeOperatorKey,
  countNodes,
  openRoster,
  readRoster,
  closeRoster,
  readHorizon,
  ensurePolicy,
  publishPolicy,
  rollBackPolicy,
  readPolicyHistory,
  readPolicyPage,
  refreshCrl,
  registerAgent,
  removeAgent,
  countAgents,
  listAgents,
  readAgent,
  issueAttestation,
  revokeAttestation,
  listAttestations,
  readAttestation,
  setRecognitionPolicy,
  readRecognitionPolicy,
  issueTreaty,
  revokeTreaty,
  listTreaties,
  readTreaty,
  importFeed,
  treatyKeys,
  refreshBulletin,
  refreshFeed,
  refreshForeignFeed,
  askRevocations,
  refreshGraph,
  refreshDashboard,
  runTrustCycle,
  awaitPublications,
  trustPath,
  considerTrust,
  readCounts,
  checkReadiness,
  openEvents,
  readEvents,
  openWebhooks,
  saveWebhooks,
};
