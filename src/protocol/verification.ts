/**
 * Public verification [core-4-11], [core-4-13], [trust-6], for the routes of an authority and for `verify --offline`. A
 * record that cannot be read is refused; the checks have a fixed order and a reason code each.
 */
import type { Sha256, VerifySignature } from '../base/crypto/primitives.ts';
import {
  areTexts,
  isJsonObject,
  isList,
  type JsonObject,
  type JsonValue,
} from '../base/json/value.ts';
import { demand, Refusal, type RefusalName, refuse } from '../base/refusal.ts';
import type {
  AgreementVerdict,
  AttestationVerdict,
  BoundaryVerdict,
  ConsensusVerdict,
  DisclosureVerdict,
  EvidenceVerdict,
  IntentVerdict,
  TreatyAttestationVerdict,
  TreatyVerdict,
} from './answers/verdicts.ts';
import type { RevocationKnowledge, RevocationQuestion } from './contract/inputs.ts';
import { readAgreementRecord, verifyAgreement } from './records/agreement.ts';
import { readBoundaryDecision, verifyBoundaryDecision } from './records/boundary-decision.ts';
import { MAX_KEYS, MAX_VALIDATORS } from './records/bounds.ts';
import {
  readCapabilityCommitment,
  readCapabilityMembershipProof,
  verifyMembership,
} from './records/capability-disclosure.ts';
import { readConsensusProof, verifyConsensusProof } from './records/consensus-proof.ts';
import {
  findViolations,
  readDataAccessIntent,
  readDataLicensePolicy,
  violationRows,
} from './records/data-usage.ts';
import { readMembershipAttestation } from './records/membership-attestation.ts';
import { readRecognitionPolicy } from './records/recognition-policy.ts';
import { type RecognitionTreaty, readRecognitionTreaty } from './records/recognition-treaty.ts';
import {
  type TrustBasis,
  verifyAttestation,
  verifyAttestationWithTreaty,
  verifyTreaty,
} from './records/recognition-verification.ts';
import type { Fresh } from './records/record.ts';
import {
  type CandidateKeys,
  candidatesAmong,
  keyList,
  triedKeys,
} from './records/signature-search.ts';
import { readTrustEvidence, verifyTrustEvidence } from './records/trust-evidence.ts';

/** Every violation repeats two ids of the intent; this limits the total number of characters. */
const MAX_REPEATED = 1 << 20;

/** The issuer of attestations, whose feed lists its revoked ones. */
export interface FeedIssuer {
  readonly name: string;
  readonly keys: readonly string[];
}

/** The environment of a verification. */
export interface Verifier extends Fresh {
  readonly verify: VerifySignature;
  readonly sha256: Sha256;
  /** Whether request sizes are limited beyond the bounds of records. */
  readonly isBounded: boolean;
  /** The keys to use if a request names none; throws if they are not known. */
  ownKeys(): readonly string[];
  /** The sovereign whose keys these are; null if it is not known. */
  readonly ownName: string | null;
  askRevocations(
    question: RevocationQuestion,
    issuer: FeedIssuer,
  ): RevocationKnowledge | Promise<RevocationKnowledge>;
}

export async function judgeAttestation(
  received: JsonValue | undefined,
  receivedPolicy: JsonValue,
  by: Verifier,
): Promise<AttestationVerdict> {
  const attestation = readMembershipAttestation(received);
  const policy = readRecognitionPolicy(receivedPolicy);
  if (attestation === null || policy === null) throw new Refusal('invalid_attestation_or_policy');
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
  const reason = verifyAttestation(attestation, known, by.now, by.verify);
  return { accepted: reason === 'accepted', reason, issuer_sovereign_id, attestation_id };
}

export async function judgeAttestationWithTreaty(
  request: JsonObject,
  by: Verifier,
): Promise<TreatyAttestationVerdict> {
  const attestation = readMembershipAttestation(request.attestation);
  const treaty = readRecognitionTreaty(request.treaty);
  if (attestation === null || treaty === null) throw new Refusal('invalid_attestation_or_treaty');
  const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = treaty;
  const held = heldKeys(request.treaty_issuer_public_keys, issuer_sovereign_id, by);
  const { attestation_id, issuer_sovereign_id: issuer } = attestation;
  const known = await by.askRevocations(
    { attestation: { id: attestation_id, issuer }, treaty: questionOn(treaty, held) },
    { name: subject_sovereign_id, keys: treaty.subject_public_keys },
  );
  const { verify, basis } = noting(held, known, by);
  const knowledge = {
    treatyIssuerKeys: held.keys,
    treatyRevoked: known.treaty_revoked,
    attestationRevoked: known.attestation_revoked_by_feed || known.attestation_revoked_here,
  };
  const reason = verifyAttestationWithTreaty(attestation, treaty, knowledge, by.now, verify);
  const parties = { treaty_id, attestation_id, issuer_sovereign_id, subject_sovereign_id };
  return { accepted: reason === 'accepted', reason, ...parties, trust_basis: basis() };
}

export async function judgeTreaty(request: JsonObject, by: Verifier): Promise<TreatyVerdict> {
  const treaty = readRecognitionTreaty(request.treaty);
  if (treaty === null) throw new Refusal('invalid_recognition_treaty');
  const held = heldKeys(request.issuer_public_keys, treaty.issuer_sovereign_id, by);
  const issuer = expectation(request, 'expected_issuer_sovereign_id');
  const subject = expectation(request, 'expected_subject_sovereign_id');
  const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = treaty;
  const known = await by.askRevocations(
    { attestation: null, treaty: questionOn(treaty, held) },
    { name: subject_sovereign_id, keys: treaty.subject_public_keys },
  );
  const { verify, basis } = noting(held, known, by);
  const expected = { issuerKeys: held.keys, issuer, subject, revoked: known.treaty_revoked };
  const reason = verifyTreaty(treaty, expected, by.now, verify);
  const parties = { treaty_id, issuer_sovereign_id, subject_sovereign_id };
  return { accepted: reason === 'accepted', reason, ...parties, trust_basis: basis() };
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

/** Notes under which key the treaty verifies, which is the first signature to do so. */
function noting({ areOurs }: HeldKeys, { treaty_keys }: RevocationKnowledge, by: Verifier) {
  let found: string | null = null;
  const verify: VerifySignature = (key, text, signature) => {
    const verifies = by.verify(key, text, signature);
    if (verifies) found ??= key;
    return verifies;
  };
  const basis = (): TrustBasis => {
    if (areOurs) return 'own_key';
    return found !== null && treaty_keys.includes(found) ? 'treaty' : 'caller_keys';
  };
  return { verify, basis };
}

export function judgeAgreement(request: JsonObject, by: Verifier): AgreementVerdict {
  const refusal = 'invalid_agreement';
  const agreement = readAgreementRecord(request.agreement, by) ?? refuse(refusal, refusal);
  const offererKeys = keysOf(request.offerer_public_keys, by, refusal);
  const responderKeys = keysOf(request.responder_public_keys, by, refusal);
  const reason = verifyAgreement(agreement, offererKeys, responderKeys, by.verify);
  return { accepted: reason === 'accepted', reason, agreement_id: agreement.agreement_id };
}

export function judgeDecision(request: JsonObject, by: Verifier): BoundaryVerdict {
  const refusal = 'invalid_decision';
  const decision = readBoundaryDecision(request.decision, by) ?? refuse(refusal, refusal);
  const keys = keysOf(request.operator_public_keys, by, refusal);
  const { decision_id } = decision;
  return { ...verifyBoundaryDecision(decision, keys, by.now, by.verify), decision_id };
}

export function judgeEvidence(request: JsonObject, by: Verifier): EvidenceVerdict {
  const refusal = 'invalid_evidence';
  const evidence = readTrustEvidence(request.evidence, by) ?? refuse(refusal, refusal);
  const keys = keysOf(request.issuer_public_keys, by, refusal);
  const digest = request.expected_graph_digest ?? null;
  const isText = digest === null || typeof digest === 'string';
  demand(isText, refusal, 'invalid_expected_graph_digest');
  const reason = verifyTrustEvidence(evidence, keys, digest, by.verify);
  const { evidence_id, issuer_sovereign_id, verdict } = evidence;
  return { accepted: reason === 'accepted', reason, evidence_id, issuer_sovereign_id, verdict };
}

export function judgeMembership(request: JsonObject, by: Verifier): DisclosureVerdict {
  const refusal = 'invalid_input';
  const proof =
    readCapabilityMembershipProof(request.proof, by) ?? refuse(refusal, 'invalid_proof');
  const commitment =
    readCapabilityCommitment(request.commitment, by) ?? refuse(refusal, 'invalid_commitment');
  const keys = keysOf(request.issuer_public_keys, by, refusal);
  const reason = verifyMembership(proof, commitment, keys, by.verify, by.sha256);
  return { valid: reason === 'valid', reason, commitment_id: commitment.commitment_id };
}

export function judgeConsensus(request: JsonObject, by: Verifier): ConsensusVerdict {
  const refusal = 'invalid_proof';
  const proof = readConsensusProof(request.proof, by) ?? refuse(refusal, refusal);
  const assemblerKeys = keysOf(request.assembler_public_keys, by, refusal);
  const { validator_public_keys: keys } = request;
  const isMap = isJsonObject(keys) && Object.keys(keys).length > 0;
  demand(isMap, 'missing_validator_public_keys', 'missing_validator_public_keys');
  const validatorKeys = new Map(Object.entries(keys));
  demandAtMost(MAX_VALIDATORS, validatorKeys.size, by, refusal, 'too_many_validators');
  const reason = verifyConsensusProof(proof, validatorKeys, assemblerKeys, by.now, by.verify);
  return { valid: reason === 'valid', reason, consensus_id: proof.consensus_id };
}

export function judgeIntent(
  request: JsonObject,
  by: Verifier,
): { readonly verdict: IntentVerdict; readonly intentId: string } {
  const refusal = 'invalid_input';
  const intent = readDataAccessIntent(request.intent, by) ?? refuse(refusal, 'invalid_intent');
  const policy = readDataLicensePolicy(request.policy, by) ?? refuse(refusal, 'invalid_policy');
  const keys = keysOf(request.agent_public_keys, by, refusal);
  const { intent_id, agent_sovereign_id } = intent;
  const found = findViolations(intent, policy, keys, by.now, by.verify);
  const repeated = found.length * (intent_id.length + agent_sovereign_id.length);
  demandAtMost(MAX_REPEATED, repeated, by, refusal, 'too_many_violations');
  const violations = violationRows(found, intent, by);
  const verdict = {
    valid: violations.length === 0,
    violation_reason: violations[0]?.violation_type ?? null,
    violation_count: violations.length,
    violations,
  };
  return { verdict, intentId: intent_id };
}

/** The keys in a request. Absent or null means our own keys; an empty list accepts nothing [trust-1-5]. */
function keysOf(
  given: JsonValue | undefined,
  by: Verifier,
  refusal: RefusalName,
): readonly string[] {
  if (given === undefined || given === null) return by.ownKeys();
  demand(isList(given) && areTexts(given), refusal, 'invalid_keys');
  demandAtMost(MAX_KEYS, given.length, by, refusal, 'too_many_keys');
  return given;
}

/** Like `keysOf`, but the keys may have ids. */
function keysOfAnyForm(given: JsonValue | undefined, by: Verifier): CandidateKeys {
  if (given === undefined || given === null) return by.ownKeys();
  const keys = keyList(given);
  if (keys === null) throw new Refusal('invalid_public_keys');
  return keys;
}

function demandAtMost(
  most: number,
  count: number,
  { isBounded }: Verifier,
  refusal: RefusalName,
  cause: string,
): void {
  demand(!isBounded || count <= most, refusal, cause);
}

function expectation(request: JsonObject, member: string): string | null {
  const value = request[member] ?? null;
  if (value === null || typeof value === 'string') return value;
  const errors = [{ loc: ['body', member], msg: 'must be a string', type: 'type' }];
  throw new Refusal('request_validation_failed', { errors });
}
