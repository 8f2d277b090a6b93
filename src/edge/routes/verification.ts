/**
 * Public, stateless verification of attestations and treaties [core-4-11], [core-4-13]. Nothing is written;
 * the authority is only asked what is revoked here.
 */
import Type from 'typebox';
import { verifySignature } from '../../base/crypto/ed25519.ts';
import { parseJson } from '../../base/json/parse.ts';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { Refusal } from '../../base/refusal.ts';
import {
  AttestationVerdict,
  TreatyAttestationVerdict,
  TreatyVerdict,
} from '../../protocol/answers/verdicts.ts';
import type { RevocationKnowledge, RevocationQuestion } from '../../protocol/contract/inputs.ts';
import {
  MembershipAttestation,
  readMembershipAttestation,
} from '../../protocol/records/membership-attestation.ts';
import {
  RecognitionPolicy,
  readRecognitionPolicy,
} from '../../protocol/records/recognition-policy.ts';
import {
  RecognitionTreaty,
  readRecognitionTreaty,
} from '../../protocol/records/recognition-treaty.ts';
import {
  verifyAttestation,
  verifyAttestationWithTreaty,
  verifyTreaty,
} from '../../protocol/records/recognition-verification.ts';
import type { CandidateKeys } from '../../protocol/records/signature-search.ts';
import type { Edge } from '../edge.ts';
import { type Reply, refusalReply } from '../reply.ts';
import type { RouteEntry, RouteRequest } from '../route.ts';
import { keyList } from './key-list.ts';
import { KeysOfAnyForm, optional } from './trust-schemas.ts';
import { verdictReply } from './verdict.ts';

export const verificationRoutes: readonly RouteEntry[] = [
  {
    method: 'POST',
    path: '/attestations/verify',
    access: 'public',
    limit: 'VERIFY',
    summary: 'Verify a membership attestation against a recognition policy',
    description: 'Without recognition_policy the one set here is used.',
    body: Type.Object({
      attestation: MembershipAttestation,
      recognition_policy: Type.Optional(RecognitionPolicy),
    }),
    answer: AttestationVerdict,
    refusals: [
      'missing_attestation',
      'missing_recognition_policy',
      'invalid_attestation_or_policy',
    ],
    handle: verifyByPolicy,
  },
  {
    method: 'POST',
    path: '/attestations/verify-with-treaty',
    access: 'public',
    limit: 'VERIFY',
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
    handle: verifyByTreaty,
  },
  {
    method: 'POST',
    path: '/recognition-treaties/verify',
    access: 'public',
    limit: 'VERIFY',
    summary: 'Verify a signed recognition treaty',
    description: 'Without issuer_public_keys only a treaty signed by this authority is accepted.',
    body: Type.Object({
      treaty: RecognitionTreaty,
      issuer_public_keys: KeysOfAnyForm,
      expected_issuer_sovereign_id: optional(Type.String()),
      expected_subject_sovereign_id: optional(Type.String()),
    }),
    answer: TreatyVerdict,
    refusals: ['missing_treaty', 'invalid_recognition_treaty', 'invalid_public_keys'],
    handle: verifyTreatyRecord,
  },
];

async function verifyByPolicy({ body, now }: RouteRequest, edge: Edge): Promise<Reply> {
  const givenAttestation = required(body, 'attestation', 'missing_attestation');
  const policy = readRecognitionPolicy(await policyFor(body, edge));
  const attestation = readMembershipAttestation(givenAttestation);
  if (attestation === null || policy === null) throw new Refusal('invalid_attestation_or_policy');
  const { attestation_id, issuer_sovereign_id } = attestation;
  const { attestation_revoked_here: isRevokedHere } = await ask(edge, {
    attestation: { id: attestation_id, issuer: issuer_sovereign_id },
    treatyId: null,
  });
  const known = isRevokedHere ? revoking(policy, attestation_id) : policy;
  const reason = verifyAttestation(attestation, known, now, verifySignature);
  const accepted = reason === 'accepted';
  const answer = { accepted, reason, issuer_sovereign_id, attestation_id };
  return verdictReply(edge, 'membership_attestation_verified', answer);
}

function revoking(policy: RecognitionPolicy, attestationId: string): RecognitionPolicy {
  const { revoked_attestation_ids: revoked } = policy;
  return { ...policy, revoked_attestation_ids: [...revoked, attestationId] };
}

/** The policy in the body, even if it is null; otherwise the one that is set here. */
async function policyFor(body: JsonObject, edge: Edge): Promise<JsonValue> {
  if (body.recognition_policy !== undefined) return body.recognition_policy;
  const answer = await edge.call('readRecognitionPolicy', null);
  if (!answer.ok) throw new Refusal('missing_recognition_policy');
  return parseJson(answer.json);
}

async function verifyByTreaty({ body, now }: RouteRequest, edge: Edge): Promise<Reply> {
  const givenAttestation = required(body, 'attestation', 'missing_attestation');
  const givenTreaty = required(body, 'treaty', 'missing_treaty');
  const attestation = readMembershipAttestation(givenAttestation);
  const treaty = readRecognitionTreaty(givenTreaty);
  if (attestation === null || treaty === null) throw new Refusal('invalid_attestation_or_treaty');
  const treatyIssuerKeys = candidateKeys(body.treaty_issuer_public_keys, edge);
  const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = treaty;
  const { attestation_id, issuer_sovereign_id: issuer } = attestation;
  const known = await ask(edge, {
    attestation: { id: attestation_id, issuer },
    treatyId: treaty_id,
  });
  const knowledge = {
    treatyIssuerKeys,
    treatyRevoked: known.treaty_revoked,
    attestationRevoked: known.attestation_revoked_by_feed || known.attestation_revoked_here,
  };
  const reason = verifyAttestationWithTreaty(attestation, treaty, knowledge, now, verifySignature);
  const accepted = reason === 'accepted';
  const logged = { treaty_id, attestation_id, subject_sovereign_id, accepted, reason };
  const answer = {
    accepted,
    reason,
    treaty_id,
    attestation_id,
    issuer_sovereign_id,
    subject_sovereign_id,
  };
  return verdictReply(edge, 'treaty_attestation_verified', answer, logged);
}

async function verifyTreatyRecord({ body, now }: RouteRequest, edge: Edge): Promise<Reply> {
  const treaty = readRecognitionTreaty(required(body, 'treaty', 'missing_treaty'));
  if (treaty === null) return refusalReply('invalid_recognition_treaty');
  const issuerKeys = candidateKeys(body.issuer_public_keys, edge);
  const issuer = expectation(body, 'expected_issuer_sovereign_id');
  const subject = expectation(body, 'expected_subject_sovereign_id');
  const { treaty_id, issuer_sovereign_id, subject_sovereign_id } = treaty;
  const { treaty_revoked: revoked } = await ask(edge, { attestation: null, treatyId: treaty_id });
  const expected = { issuerKeys, issuer, subject, revoked };
  const reason = verifyTreaty(treaty, expected, now, verifySignature);
  const accepted = reason === 'accepted';
  const answer = { accepted, reason, treaty_id, issuer_sovereign_id, subject_sovereign_id };
  return verdictReply(edge, 'recognition_treaty_verified', answer);
}

function required(
  body: JsonObject,
  member: string,
  refusal: 'missing_attestation' | 'missing_treaty',
): JsonValue {
  const value = body[member] ?? null;
  if (value === null) throw new Refusal(refusal);
  return value;
}

function expectation(body: JsonObject, member: string): string | null {
  const value = body[member] ?? null;
  if (value === null || typeof value === 'string') return value;
  const errors = [{ loc: ['body', member], msg: 'must be a string', type: 'type' }];
  throw new Refusal('request_validation_failed', { errors });
}

/** Absent or null means our own key; an empty list accepts nothing. */
function candidateKeys(given: JsonValue | undefined, edge: Edge): CandidateKeys {
  if (given === undefined || given === null) return [edge.settings.nodeAuth.audience];
  const keys = keyList(given);
  if (keys === null) throw new Refusal('invalid_public_keys');
  return keys;
}

/** What is revoked here. */
async function ask(edge: Edge, question: RevocationQuestion): Promise<RevocationKnowledge> {
  const answer = await edge.call('askRevocations', question);
  if (!answer.ok) throw new Refusal(answer.refusal, answer.details);
  return JSON.parse(answer.json) as RevocationKnowledge;
}
