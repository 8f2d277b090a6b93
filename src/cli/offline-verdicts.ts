/**
 * The verdicts of `verify` commands without an authority: what its public routes answer, from the records and keys
 * alone. What only an authority knows, such as what it has revoked, is named as not checked.
 */

import type { JsonObject } from '../base/json/value.ts';
import type { REFUSALS } from '../base/refusal.ts';
import type { Runtime } from '../base/runtime.ts';
import { verifyText } from '../client/keys.ts';
import type { PublicClient } from '../client/public-client.ts';
import { portableSha256 } from '../client/sha256.ts';
import { readAgreementRecord, verifyAgreement } from '../protocol/records/agreement.ts';
import {
  readBoundaryDecision,
  verifyBoundaryDecision,
} from '../protocol/records/boundary-decision.ts';
import {
  readCapabilityCommitment,
  readCapabilityMembershipProof,
  verifyMembership,
} from '../protocol/records/capability-disclosure.ts';
import { readConsensusProof, verifyConsensusProof } from '../protocol/records/consensus-proof.ts';
import {
  findViolations,
  readDataAccessIntent,
  readDataLicensePolicy,
  violationRows,
} from '../protocol/records/data-usage.ts';
import { readMembershipAttestation } from '../protocol/records/membership-attestation.ts';
import { readRecognitionPolicy } from '../protocol/records/recognition-policy.ts';
import { readRecognitionTreaty } from '../protocol/records/recognition-treaty.ts';
import {
  verifyAttestation,
  verifyAttestationWithTreaty,
  verifyTreaty,
} from '../protocol/records/recognition-verification.ts';
import { keyOfFeed, readRevocationFeed } from '../protocol/records/revocation-feed.ts';
import type { CandidateKeys } from '../protocol/records/signature-search.ts';
import { readTrustEvidence, verifyTrustEvidence } from '../protocol/records/trust-evidence.ts';
import { EXIT, failure, usageFailure } from './exit-codes.ts';

/** What commands have verified. */
export type Verifications = Pick<
  PublicClient,
  | 'verifyAttestation'
  | 'verifyAttestationWithTreaty'
  | 'verifyTreaty'
  | 'verifyAgreement'
  | 'verifyDecision'
  | 'verifyEvidence'
  | 'verifyMembership'
  | 'verifyConsensus'
  | 'verifyIntent'
>;

/** Checks that only an authority can make. */
export type Unchecked = 'attestation_revocation' | 'treaty_revocation';

export interface OfflineKnowledge {
  /** The key that records must be signed by when a command names none; throws when it is not known. */
  authorityKey(): string;
  /** The issuer's revocation feed, as it was received. */
  readonly feed: JsonObject | null;
  readonly runtime: Pick<Runtime, 'now' | 'uuid'>;
}

export function offlineVerdicts({ authorityKey, feed, runtime }: OfflineKnowledge): Verifications {
  const now = runtime.now();
  const fresh = { now, uuid: runtime.uuid };
  const keysOr = <Keys extends object>(given: Keys | undefined) => given ?? [authorityKey()];

  return {
    async verifyAttestation({ attestation: received, recognition_policy }) {
      if (recognition_policy === undefined) {
        throw usageFailure('Offline, --policy or --treaty is needed: the policy to decide by');
      }
      const code = 'invalid_attestation_or_policy';
      const attestation = readable(readMembershipAttestation(received), code);
      const policy = readable(readRecognitionPolicy(recognition_policy), code);
      const { attestation_id, issuer_sovereign_id } = attestation;
      const issuer = policy.recognized_issuers.find(
        ({ sovereign_id }) => sovereign_id === issuer_sovereign_id,
      );
      const revoked = revokedBy(feed, issuer_sovereign_id, issuer?.public_keys ?? []);
      const known = [...policy.revoked_attestation_ids, ...(revoked ?? [])];
      const extended = { ...policy, revoked_attestation_ids: known };
      const reason = verifyAttestation(attestation, extended, now, verifyText);
      const accepted = reason === 'accepted';
      const answer = { accepted, reason, issuer_sovereign_id, attestation_id };
      return { ...answer, unchecked: unchecked(revoked) };
    },

    async verifyAttestationWithTreaty(request) {
      const code = 'invalid_attestation_or_treaty';
      const attestation = readable(readMembershipAttestation(request.attestation), code);
      const treaty = readable(readRecognitionTreaty(request.treaty), code);
      const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = treaty;
      const { attestation_id } = attestation;
      const revoked = revokedBy(feed, subject_sovereign_id, treaty.subject_public_keys);
      const knowledge = {
        treatyIssuerKeys: candidates(keysOr(request.treaty_issuer_public_keys)),
        treatyRevoked: false,
        attestationRevoked: revoked?.includes(attestation_id) ?? false,
      };
      const reason = verifyAttestationWithTreaty(attestation, treaty, knowledge, now, verifyText);
      const parties = { treaty_id, attestation_id, issuer_sovereign_id, subject_sovereign_id };
      const open: Unchecked[] = ['treaty_revocation', ...unchecked(revoked)];
      return { accepted: reason === 'accepted', reason, ...parties, unchecked: open };
    },

    async verifyTreaty(request) {
      const treaty = readable(readRecognitionTreaty(request.treaty), 'invalid_recognition_treaty');
      const expected = {
        issuerKeys: candidates(keysOr(request.issuer_public_keys)),
        issuer: request.expected_issuer_sovereign_id ?? null,
        subject: request.expected_subject_sovereign_id ?? null,
        revoked: false,
      };
      const reason = verifyTreaty(treaty, expected, now, verifyText);
      const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = treaty;
      const parties = { treaty_id, issuer_sovereign_id, subject_sovereign_id };
      const open: Unchecked[] = ['treaty_revocation'];
      return { accepted: reason === 'accepted', reason, ...parties, unchecked: open };
    },

    async verifyAgreement(request) {
      const agreement = readable(
        readAgreementRecord(request.agreement, fresh),
        'invalid_agreement',
      );
      const offererKeys = keysOr(request.offerer_public_keys);
      const responderKeys = keysOr(request.responder_public_keys);
      const reason = verifyAgreement(agreement, offererKeys, responderKeys, verifyText);
      const { agreement_id } = agreement;
      return { accepted: reason === 'accepted', reason, agreement_id };
    },

    async verifyDecision(request) {
      const decision = readable(readBoundaryDecision(request.decision, fresh), 'invalid_decision');
      const keys = keysOr(request.operator_public_keys);
      const { decision_id } = decision;
      return { ...verifyBoundaryDecision(decision, keys, now, verifyText), decision_id };
    },

    async verifyEvidence(request) {
      const evidence = readable(readTrustEvidence(request.evidence, fresh), 'invalid_evidence');
      const keys = keysOr(request.issuer_public_keys);
      const digest = request.expected_graph_digest ?? null;
      const reason = verifyTrustEvidence(evidence, keys, digest, verifyText);
      const { evidence_id, issuer_sovereign_id, verdict } = evidence;
      const accepted = reason === 'accepted';
      return { accepted, reason, evidence_id, issuer_sovereign_id, verdict };
    },

    async verifyMembership(request) {
      const proof = readable(readCapabilityMembershipProof(request.proof, fresh), 'invalid_input');
      const commitment = readable(
        readCapabilityCommitment(request.commitment, fresh),
        'invalid_input',
      );
      const keys = keysOr(request.issuer_public_keys);
      const reason = verifyMembership(proof, commitment, keys, verifyText, portableSha256);
      return { valid: reason === 'valid', reason, commitment_id: commitment.commitment_id };
    },

    async verifyConsensus(request) {
      const proof = readable(readConsensusProof(request.proof, fresh), 'invalid_proof');
      const validatorKeys = new Map(Object.entries(request.validator_public_keys));
      const keys = keysOr(request.assembler_public_keys);
      const reason = verifyConsensusProof(proof, validatorKeys, keys, now, verifyText);
      return { valid: reason === 'valid', reason, consensus_id: proof.consensus_id };
    },

    async verifyIntent(request) {
      const intent = readable(readDataAccessIntent(request.intent, fresh), 'invalid_input');
      const policy = readable(readDataLicensePolicy(request.policy, fresh), 'invalid_input');
      const keys = keysOr(request.agent_public_keys);
      const found = findViolations(intent, policy, keys, now, verifyText);
      const violations = violationRows(found, intent, { now, uuid: runtime.uuid });
      return {
        valid: violations.length === 0,
        violation_reason: violations[0]?.violation_type ?? null,
        violation_count: violations.length,
        violations,
      };
    },
  };
}

/** The record; a malformed one is refused by the code that an authority refuses it with. */
function readable<T>(record: T | null, code: (typeof REFUSALS)[keyof typeof REFUSALS]['code']): T {
  if (record !== null) return record;
  throw failure(EXIT.refused, code, `A record does not have the expected form (${code})`);
}

function candidates(keys: readonly string[] | { readonly [id: string]: string }): CandidateKeys {
  return Array.isArray(keys) ? keys : new Map(Object.entries(keys));
}

function unchecked(revoked: readonly string[] | null): Unchecked[] {
  return revoked === null ? ['attestation_revocation'] : [];
}

/** Ids on the feed of this issuer, which must be signed by one of its keys; null without a feed. */
function revokedBy(
  received: JsonObject | null,
  issuer: string,
  keys: readonly string[],
): readonly string[] | null {
  if (received === null) return null;
  const feed = readRevocationFeed(received);
  const refused = (reason: string) =>
    failure(EXIT.refused, reason, `The revocation feed is refused: ${reason}`);
  if (feed === null) throw refused('malformed');
  if (feed.issuer_sovereign_id !== issuer) throw refused('wrong_issuer');
  if (keyOfFeed(feed, keys, verifyText) === null) throw refused('invalid_signature');
  return feed.revoked_attestation_ids;
}
