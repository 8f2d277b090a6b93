/** The public verifications [core-4-11], [core-4-13], [trust-6]. */
import Type from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.ts';
import {
  AgreementVerdict,
  AttestationVerdict,
  BoundaryVerdict,
  ConsensusVerdict,
  DisclosureVerdict,
  EvidenceVerdict,
  IntentVerdict,
  TreatyAttestationVerdict,
  TreatyVerdict,
} from '../answers/verdicts.ts';
import {
  AgreementRecord,
  verifyAgreement as agreementReason,
  readAgreementRecord,
} from '../records/agreement.ts';
import {
  BoundaryDecision,
  readBoundaryDecision,
  verifyBoundaryDecision,
} from '../records/boundary-decision.ts';
import {
  CapabilityCommitment,
  CapabilityMembershipProof,
  verifyMembership as membershipReason,
  readCapabilityCommitment,
  readCapabilityMembershipProof,
} from '../records/capability-disclosure.ts';
import {
  ConsensusProof,
  readConsensusProof,
  verifyConsensusProof,
} from '../records/consensus-proof.ts';
import {
  DataAccessIntent,
  DataLicensePolicy,
  findViolations,
  readDataAccessIntent,
  readDataLicensePolicy,
  violationRows,
} from '../records/data-usage.ts';
import {
  verifyAttestation as attestationReason,
  MembershipAttestation,
  RecognitionPolicy,
  RecognitionTreaty,
  readMembershipAttestation,
  readRecognitionPolicy,
  readRecognitionTreaty,
  type TrustBasis,
  verifyAttestationWithTreaty as treatyAttestationReason,
  verifyTreaty as treatyReason,
} from '../records/recognition.ts';
import { MAX_VALIDATORS } from '../records/record.ts';
import {
  type CandidateKeys,
  candidatesAmong,
  isSignedByAny,
  triedKeys,
  withinBudget,
} from '../records/signed-record.ts';
import {
  readTrustEvidence,
  TrustEvidence,
  verifyTrustEvidence,
} from '../records/trust-evidence.ts';
import { demand, Refusal, type RefusalName, refuse } from '../refusals.ts';
import { KeysOfAnyForm } from './members.ts';
import { Keys, omittable } from './trust-members.ts';
import {
  demandAtMost,
  demandSent,
  keysOf,
  keysOfAnyForm,
  logging,
  publicVerification,
  type RevocationKnowledge,
  type Verifier,
} from './verification.ts';

/** Every violation repeats two ids of the intent; this limits the total number of characters. */
const MAX_REPEATED = 1 << 20;

export const verifyAttestation = publicVerification('POST /attestations/verify', {
  summary: 'Verify a membership attestation against a recognition policy',
  description: 'Without recognition_policy the one set here is used.',
  body: Type.Object({
    attestation: MembershipAttestation,
    recognition_policy: Type.Optional(RecognitionPolicy),
  }),
  answer: AttestationVerdict,
  refusals: ['missing_attestation', 'missing_recognition_policy', 'invalid_attestation_or_policy'],
  event: 'membership_attestation_verified',
  async judge(body, by) {
    demandMember(body, 'attestation', 'missing_attestation');
    const { recognition_policy: given = await by.ownPolicy() } = body;
    const attestation = readMembershipAttestation(body.attestation);
    const policy = readRecognitionPolicy(given);
    if (attestation === null || policy === null) refuse('invalid_attestation_or_policy');
    const { attestation_id, issuer_sovereign_id } = attestation;
    const issuer = policy.recognized_issuers.find(
      ({ sovereign_id }) => sovereign_id === issuer_sovereign_id,
    );
    const { attestation_revoked_here: isRevokedHere } = await by.askRevocations(
      { attestation: { id: attestation_id, issuer: issuer_sovereign_id }, treaty: null },
      { name: issuer_sovereign_id, keys: issuer?.public_keys ?? [] },
    );
    const revoked = policy.revoked_attestation_ids;
    const known = isRevokedHere
      ? { ...policy, revoked_attestation_ids: [...revoked, attestation_id] }
      : policy;
    const reason = attestationReason(attestation, known, by.now, by.verify);
    const accepted = reason === 'accepted';
    const verdict = { accepted, reason, issuer_sovereign_id, attestation_id };
    return { verdict, logged: verdict };
  },
});

export const verifyAttestationWithTreaty = publicVerification(
  'POST /attestations/verify-with-treaty',
  {
    summary: 'Verify a membership attestation by a treaty with its issuer',
    body: Type.Object({
      attestation: MembershipAttestation,
      treaty: RecognitionTreaty,
      treaty_issuer_public_keys: KeysOfAnyForm,
    }),
    answer: TreatyAttestationVerdict,
    refusals: [
      'missing_attestation',
      'missing_treaty',
      'invalid_attestation_or_treaty',
      'invalid_public_keys',
    ],
    event: 'treaty_attestation_verified',
    async judge(body, by) {
      demandMember(body, 'attestation', 'missing_attestation');
      demandMember(body, 'treaty', 'missing_treaty');
      const attestation = readMembershipAttestation(body.attestation);
      const treaty = readRecognitionTreaty(body.treaty);
      if (attestation === null || treaty === null) refuse('invalid_attestation_or_treaty');
      const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = treaty;
      const held = heldKeys(body.treaty_issuer_public_keys, issuer_sovereign_id, by);
      const { attestation_id, issuer_sovereign_id: issuer } = attestation;
      const known = await by.askRevocations(
        { attestation: { id: attestation_id, issuer }, treaty: questionOn(treaty, held) },
        { name: subject_sovereign_id, keys: treaty.subject_public_keys },
      );
      const verify = withinBudget(by.verify);
      const knowledge = {
        treatyIssuerKeys: held.keys,
        treatyRevoked: known.treaty_revoked,
        attestationRevoked: known.attestation_revoked_by_feed || known.attestation_revoked_here,
      };
      const reason = treatyAttestationReason(attestation, treaty, knowledge, by.now, verify);
      const accepted = reason === 'accepted';
      const parties = { treaty_id, attestation_id, issuer_sovereign_id, subject_sovereign_id };
      const trust_basis = basisOf(treaty, held, known, verify);
      return logging(
        { accepted, reason, ...parties, trust_basis },
        'treaty_id',
        'attestation_id',
        'subject_sovereign_id',
        'accepted',
        'reason',
      );
    },
  },
);

export const verifyTreaty = publicVerification('POST /recognition-treaties/verify', {
  summary: 'Verify a signed recognition treaty',
  description: 'Without issuer_public_keys only a treaty signed by this authority is accepted.',
  body: Type.Object({
    treaty: RecognitionTreaty,
    issuer_public_keys: KeysOfAnyForm,
    expected_issuer_sovereign_id: omittable(Type.String()),
    expected_subject_sovereign_id: omittable(Type.String()),
  }),
  answer: TreatyVerdict,
  refusals: ['missing_treaty', 'invalid_recognition_treaty', 'invalid_public_keys'],
  event: 'recognition_treaty_verified',
  async judge(body, by) {
    demandMember(body, 'treaty', 'missing_treaty');
    const treaty = readRecognitionTreaty(body.treaty) ?? refuse('invalid_recognition_treaty');
    const held = heldKeys(body.issuer_public_keys, treaty.issuer_sovereign_id, by);
    const issuer = expectation(body, 'expected_issuer_sovereign_id');
    const subject = expectation(body, 'expected_subject_sovereign_id');
    const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = treaty;
    const known = await by.askRevocations(
      { attestation: null, treaty: questionOn(treaty, held) },
      { name: subject_sovereign_id, keys: treaty.subject_public_keys },
    );
    const verify = withinBudget(by.verify);
    const expected = { issuerKeys: held.keys, issuer, subject, revoked: known.treaty_revoked };
    const reason = treatyReason(treaty, expected, by.now, verify);
    const accepted = reason === 'accepted';
    const parties = { treaty_id, issuer_sovereign_id, subject_sovereign_id };
    const trust_basis = basisOf(treaty, held, known, verify);
    return logging(
      { accepted, reason, ...parties, trust_basis },
      'accepted',
      'reason',
      'treaty_id',
      'issuer_sovereign_id',
      'subject_sovereign_id',
    );
  },
});

export const verifyAgreement = publicVerification('POST /agreements/verify', {
  summary: 'Verify who signed an agreement',
  description: 'Keys left out are those of this authority; neither age nor evidence is judged.',
  body: Type.Object({
    agreement: AgreementRecord,
    offerer_public_keys: Keys,
    responder_public_keys: Keys,
  }),
  answer: AgreementVerdict,
  refusals: ['missing_agreement', 'invalid_agreement'],
  event: 'agreement_verified',
  judge(body, by) {
    demandSent(body, ['agreement'], by, 'missing_agreement');
    const refusal = 'invalid_agreement';
    const agreement = readAgreementRecord(body.agreement, by) ?? refuse(refusal, refusal);
    const offererKeys = keysOf(body.offerer_public_keys, by, refusal);
    const responderKeys = keysOf(body.responder_public_keys, by, refusal);
    const reason = agreementReason(agreement, offererKeys, responderKeys, by.verify);
    const { agreement_id } = agreement;
    const verdict = { accepted: reason === 'accepted', reason, agreement_id };
    return logging(verdict, 'agreement_id', 'accepted');
  },
});

export const verifyDecision = publicVerification('POST /boundary/verify', {
  summary: 'Verify a boundary decision',
  body: Type.Object({ decision: BoundaryDecision, operator_public_keys: Keys }),
  answer: BoundaryVerdict,
  refusals: ['missing_decision', 'invalid_decision'],
  event: 'boundary_decision_verified',
  judge(body, by) {
    demandSent(body, ['decision'], by, 'missing_decision');
    const refusal = 'invalid_decision';
    const decision = readBoundaryDecision(body.decision, by) ?? refuse(refusal, refusal);
    const keys = keysOf(body.operator_public_keys, by, refusal);
    const { decision_id } = decision;
    const verdict = { ...verifyBoundaryDecision(decision, keys, by.now, by.verify), decision_id };
    return logging(verdict, 'decision_id', 'accepted');
  },
});

export const verifyEvidence = publicVerification('POST /trust-evidence/verify', {
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
    demandSent(body, ['evidence'], by, 'missing_evidence');
    const refusal = 'invalid_evidence';
    const evidence = readTrustEvidence(body.evidence, by) ?? refuse(refusal, refusal);
    const keys = keysOf(body.issuer_public_keys, by, refusal);
    const digest = body.expected_graph_digest ?? null;
    const isText = digest === null || typeof digest === 'string';
    demand(isText, refusal, 'invalid_expected_graph_digest');
    const reason = verifyTrustEvidence(evidence, keys, digest, by.verify);
    const { evidence_id, issuer_sovereign_id, verdict } = evidence;
    const accepted = reason === 'accepted';
    return logging(
      { accepted, reason, evidence_id, issuer_sovereign_id, verdict },
      'evidence_id',
      'accepted',
    );
  },
});

export const verifyMembership = publicVerification('POST /disclosure/verify', {
  summary: 'Verify that a capability was committed to',
  body: Type.Object({
    proof: CapabilityMembershipProof,
    commitment: CapabilityCommitment,
    issuer_public_keys: Keys,
  }),
  answer: DisclosureVerdict,
  refusals: ['missing_verify_fields', 'invalid_input'],
  event: 'capability_proof_verified',
  judge(body, by) {
    demandSent(body, ['proof', 'commitment'], by, 'missing_verify_fields');
    const refusal = 'invalid_input';
    const proof = readCapabilityMembershipProof(body.proof, by) ?? refuse(refusal, 'invalid_proof');
    const commitment =
      readCapabilityCommitment(body.commitment, by) ?? refuse(refusal, 'invalid_commitment');
    const keys = keysOf(body.issuer_public_keys, by, refusal);
    const reason = membershipReason(proof, commitment, keys, by.verify, by.sha256);
    const { commitment_id } = commitment;
    return logging({ valid: reason === 'valid', reason, commitment_id }, 'commitment_id', 'valid');
  },
});

export const verifyConsensus = publicVerification('POST /consensus/verify', {
  summary: 'Verify a consensus proof',
  description:
    'Every counted vote must verify under the key given for its validator; each validator counts ' +
    'once; without assembler keys only proofs of this authority are accepted.',
  body: Type.Object({
    proof: ConsensusProof,
    validator_public_keys: Type.Record(Type.String(), Type.String(), {
      minProperties: 1,
      maxProperties: MAX_VALIDATORS,
    }),
    assembler_public_keys: Keys,
  }),
  example: {
    validator_public_keys: { beta: '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=' },
  },
  answer: ConsensusVerdict,
  refusals: ['missing_proof', 'invalid_proof', 'missing_validator_public_keys'],
  event: 'consensus_proof_verified',
  judge(body, by) {
    demandSent(body, ['proof'], by, 'missing_proof');
    const refusal = 'invalid_proof';
    const proof = readConsensusProof(body.proof, by) ?? refuse(refusal, refusal);
    const assemblerKeys = keysOf(body.assembler_public_keys, by, refusal);
    const { validator_public_keys: keys } = body;
    const isMap = isJsonObject(keys) && Object.keys(keys).length > 0;
    demand(isMap, 'missing_validator_public_keys', 'missing_validator_public_keys');
    const validatorKeys = new Map(Object.entries(keys));
    demandAtMost(MAX_VALIDATORS, validatorKeys.size, by, refusal, 'too_many_validators');
    const reason = verifyConsensusProof(proof, validatorKeys, assemblerKeys, by.now, by.verify);
    const { consensus_id } = proof;
    return logging({ valid: reason === 'valid', reason, consensus_id }, 'consensus_id', 'valid');
  },
});

export const verifyIntent = publicVerification('POST /data-usage/verify', {
  summary: 'Verify an access intent against a license policy',
  description: "The policy's own signature, and who is licensed by it, are not examined.",
  body: Type.Object({
    intent: DataAccessIntent,
    policy: DataLicensePolicy,
    agent_public_keys: Keys,
  }),
  answer: IntentVerdict,
  refusals: ['missing_verify_fields', 'invalid_input'],
  event: 'data_access_intent_verified',
  judge(body, by) {
    demandSent(body, ['intent', 'policy'], by, 'missing_verify_fields');
    const refusal = 'invalid_input';
    const intent = readDataAccessIntent(body.intent, by) ?? refuse(refusal, 'invalid_intent');
    const policy = readDataLicensePolicy(body.policy, by) ?? refuse(refusal, 'invalid_policy');
    const keys = keysOf(body.agent_public_keys, by, refusal);
    const { intent_id, agent_sovereign_id } = intent;
    const found = findViolations(intent, policy, keys, by.now, by.verify);
    const repeated = found.length * (intent_id.length + agent_sovereign_id.length);
    demandAtMost(MAX_REPEATED, repeated, by, refusal, 'too_many_violations');
    const violations = violationRows(found, intent, by);
    const valid = violations.length === 0;
    const violation_count = violations.length;
    const violation_reason = violations[0]?.violation_type ?? null;
    return {
      verdict: { valid, violation_reason, violation_count, violations },
      logged: { intent_id, valid, violation_count },
    };
  },
});

/** Unlike in other requests, an empty member counts as present. */
function demandMember(body: JsonObject, member: string, refusal: RefusalName): void {
  if ((body[member] ?? null) === null) throw new Refusal(refusal);
}

/** The keys that a treaty is held against. */
interface HeldKeys {
  readonly keys: CandidateKeys;
  readonly areOurs: boolean;
}

/** For a treaty in our own name, only our own keys count, whichever others the caller gives. */
function heldKeys(given: JsonValue | undefined, issuer: string, by: Verifier): HeldKeys {
  const keys = keysOfAnyForm(given, by);
  if (given === undefined || given === null) return { keys, areOurs: true };
  if (issuer !== by.ownName) return { keys, areOurs: false };
  return { keys: candidatesAmong(keys, by.ownKeys()), areOurs: true };
}

function questionOn(treaty: RecognitionTreaty, { keys, areOurs }: HeldKeys) {
  const { treaty_id: id, issuer_sovereign_id: issuer } = treaty;
  return { id, issuer, issuerKeys: areOurs ? [] : triedKeys(keys) };
}

/** On whose word the keys are the issuer's. The search for it shares the budget of the verification. */
function basisOf(
  treaty: RecognitionTreaty,
  { keys, areOurs }: HeldKeys,
  { treaty_keys: named }: RevocationKnowledge,
  verify: VerifySignature,
): TrustBasis {
  if (areOurs) return 'own_key';
  const isNamed = named.length > 0 && isSignedByAny(treaty, candidatesAmong(keys, named), verify);
  return isNamed ? 'treaty' : 'caller_keys';
}

function expectation(request: JsonObject, member: string): string | null {
  const value = request[member] ?? null;
  if (value === null || typeof value === 'string') return value;
  const errors = [{ loc: ['body', member], msg: 'must be a string', type: 'type' }];
  throw new Refusal('request_validation_failed', { errors });
}
