/**
 * Records that this sovereign builds and signs for an operator: boundary decisions [trust-4-4], [trust-5-4], trust
 * evidence [trust-5-5], capability commitments and one-time nullifiers [trust-4-5], [trust-5-6], [trust-5-7], votes and
 * consensus proofs [trust-4-7], [trust-5-8], [trust-5-9], data-license policies and access intents [trust-5-10],
 * [trust-5-11].
 */

import type { LicensePolicy } from '../../../machines/one-record.ts';
import { SHA256, sha256Hex } from '../../base/crypto/digest.ts';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { parseJson } from '../../base/json/parse.ts';
import { jsonText } from '../../base/json/write.ts';
import { publishedDocument } from '../../protocol/contract/documents.ts';
import { buildBoundaryDecision } from '../../protocol/records/boundary-decision.ts';
import {
  buildCommitment,
  buildNullifier,
  membershipProofDigest,
  NULLIFIER_NONCE_BYTES,
  revealsItsLeaf,
} from '../../protocol/records/capability-disclosure.ts';
import { assembleConsensusProof } from '../../protocol/records/consensus-proof.ts';
import {
  buildAccessIntent,
  buildLicensePolicy,
  type DataLicensePolicy,
  readDataLicensePolicy,
} from '../../protocol/records/data-usage.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { signSingly } from '../../protocol/records/signed-record.ts';
import { buildTrustEvidence } from '../../protocol/records/trust-evidence.ts';
import { buildValidatorVote, isForgery } from '../../protocol/records/validator-vote.ts';
import { isSignerUnavailable, refuse } from '../../protocol/refusals.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { built, issuerOf } from '../engine/issuer.ts';
import { refusalIn, transition } from '../subjects/kinds.ts';
import { ownTreatyKeys } from './treaties.ts';

export const decideBoundary: Handler<'decideBoundary'> = (na, unit, { agreement, ...request }) => {
  const result = buildBoundaryDecision(
    issuerOf(na, unit),
    agreement,
    request,
    (sovereign) => ownTreatyKeys(na, sovereign, unit.at),
    verifySignature,
  );
  const decision = built(result, 'boundary_eval_failed');
  unit.audit('boundary_decision_made', {
    decision_id: decision.decision_id,
    context_id: decision.context_id,
    agreement_id: decision.agreement_id,
    requested_capability: request.requested_capability,
    authorized: decision.authorized,
  });
  return decision;
};

/** Signs the decision as given, without evaluating it. */
export const buildEvidence: Handler<'buildEvidence'> = (na, unit, { decision, graph_digest }) => {
  const digest = graph_digest ?? na.graph.digest.at(unit.at);
  const evidence = buildTrustEvidence(issuerOf(na, unit), decision, digest);
  unit.audit('trust_evidence_built', {
    evidence_id: evidence.evidence_id,
    source_sovereign_id: evidence.source_sovereign_id,
    target_sovereign_id: evidence.target_sovereign_id,
    verdict: evidence.verdict,
  });
  return evidence;
};

export const commitCapabilities: Handler<'commitCapabilities'> = (
  na,
  unit,
  { agreement, capabilities },
) => {
  const { commitWithinAgreement } = na.settings;
  const commitment = built(
    buildCommitment(
      issuerOf(na, unit),
      agreement,
      capabilities,
      commitWithinAgreement,
      (sovereign) => ownTreatyKeys(na, sovereign, unit.at),
      verifySignature,
    ),
    'commit_failed',
  );
  const { commitment_id, agreement_id, capability_count } = commitment;
  unit.audit('capability_commitment_created', { commitment_id, agreement_id, capability_count });
  return commitment;
};

/** Proof ids are free text, so the subject's key is a digest of the id. */
export const nullifyProof: Handler<'nullifyProof'> = (na, unit, { proof }) => {
  const { proof_id, commitment_id } = proof;
  const nonce = na.runtime.randomBytes(NULLIFIER_NONCE_BYTES).toString('hex');
  const record = buildNullifier(issuerOf(na, unit), proof, nonce);
  const emitted = unit.send('capability-nullifier', sha256Hex(proof_id), {
    type: 'issue',
    leafMatches: revealsItsLeaf(proof, SHA256),
    nullifier: {
      proofDigest: membershipProofDigest(proof, SHA256),
      commitmentId: commitment_id,
      nullifierId: record.nullifier_id,
      issuedAt: unit.at,
      expiresAt: instantOf(record.expires_at),
    },
  });
  const refused = refusalIn(emitted);
  if (refused !== null) refuse(refused.refusal, refused.reason ?? refused.refusal);
  unit.audit('capability_nullifier_issued', {
    nullifier_id: record.nullifier_id,
    proof_id,
    commitment_id,
  });
  return record;
};

export const castVote: Handler<'castVote'> = (na, unit, given) => {
  const { justification_proof, vote, reason } = given;
  const ballot = buildValidatorVote(issuerOf(na, unit), justification_proof, vote, reason);
  unit.audit('validator_vote_cast', {
    vote_id: ballot.vote_id,
    proof_id: ballot.proof_id,
    decision_id: ballot.decision_id,
    vote: ballot.vote,
  });
  return ballot;
};

export const assembleConsensus: Handler<'assembleConsensus'> = (
  na,
  unit,
  { justification_proof: justification, ...ballots },
) => {
  const issuer = issuerOf(na, unit);
  if (isForgery(issuer, justification, verifySignature)) {
    refuse('proof_assembly_failed', 'justification_not_signed_here');
  }
  const result = assembleConsensusProof(issuer, justification, ballots);
  const { proof, assessment } = built(result, 'proof_assembly_failed');
  unit.audit('consensus_proof_assembled', {
    consensus_id: proof.consensus_id,
    proof_id: proof.proof_id,
    vote_count: proof.votes.length,
    required_threshold: proof.required_threshold,
  });
  unit.whenCommitted(() => na.log('consensus_cascade_assessed', assessment));
  return proof;
};

export const createLicensePolicy: Handler<'createLicensePolicy'> = (na, unit, terms) => {
  const policy = buildLicensePolicy(issuerOf(na, unit), terms);
  unit.audit('data_license_policy_created', {
    policy_id: policy.policy_id,
    licensor_sovereign_id: policy.licensor_sovereign_id,
    licensee_sovereign_id: policy.licensee_sovereign_id,
    allowed_access_types: policy.allowed_access_types,
  });
  unit.whenCommitted(() => putLicensePolicy(na, policy));
  return policy;
};

function putLicensePolicy(na: Authority, policy: DataLicensePolicy): void {
  const record = { json: jsonText(policy), validUntil: instantOf(policy.valid_until) };
  const event = { type: 'record', record } as const;
  na.license.policy = transition('data-license-policy', na.license.policy, event).next;
  na.publisher.publish('data_license_policy', publishedDocument(record.json));
}

/** Signs the policy in force with the keys that sign now; it stays as it is if these are unavailable. */
export function signLicensePolicyAgain(na: Authority): void {
  const held = na.license.policy?.context as LicensePolicy | undefined;
  const policy = held && readDataLicensePolicy(parseJson(held.json));
  if (!policy) return;
  try {
    putLicensePolicy(na, signSingly(policy, na.signer));
  } catch (cause) {
    if (!isSignerUnavailable(cause)) throw cause;
  }
}

export const declareIntent: Handler<'declareIntent'> = (na, unit, access) => {
  const intent = buildAccessIntent(issuerOf(na, unit), access);
  unit.audit('data_access_intent_created', {
    intent_id: intent.intent_id,
    agent_sovereign_id: intent.agent_sovereign_id,
    decision_id: intent.decision_id,
    declared_access_types: intent.declared_access_types,
    source_count: intent.declared_sources.length,
  });
  return intent;
};
