/**
 * Public, stateless verification of attestations and treaties [core-4-11], [core-4-13]. Nothing is written; the
 * authority is only asked which items are revoked here.
 */
import Type from 'typebox';
import { parseJson } from '../../base/json/parse.ts';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { Refusal } from '../../base/refusal.ts';
import {
  AttestationVerdict,
  TreatyAttestationVerdict,
  TreatyVerdict,
} from '../../protocol/answers/verdicts.ts';
import { KeysOfAnyForm } from '../../protocol/api/scalars.ts';
import { omittable } from '../../protocol/api/trust-members.ts';
import { MembershipAttestation } from '../../protocol/records/membership-attestation.ts';
import { RecognitionPolicy } from '../../protocol/records/recognition-policy.ts';
import { RecognitionTreaty } from '../../protocol/records/recognition-treaty.ts';
import {
  judgeAttestation,
  judgeAttestationWithTreaty,
  judgeTreaty,
} from '../../protocol/verification.ts';
import type { Edge } from '../edge.ts';
import type { RouteEntry } from '../route.ts';
import { logging, verificationRoute } from './verification-route.ts';

export const verificationRoutes: readonly RouteEntry[] = [
  verificationRoute({
    path: '/attestations/verify',
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
    event: 'membership_attestation_verified',
    async judge(body, by, edge) {
      demandMember(body, 'attestation', 'missing_attestation');
      const policy = await policyFor(body, edge);
      const verdict = await judgeAttestation(body.attestation, policy, by);
      return { verdict, logged: verdict };
    },
  }),
  verificationRoute({
    path: '/attestations/verify-with-treaty',
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
      const verdict = await judgeAttestationWithTreaty(body, by);
      return logging(
        verdict,
        'treaty_id',
        'attestation_id',
        'subject_sovereign_id',
        'accepted',
        'reason',
      );
    },
  }),
  verificationRoute({
    path: '/recognition-treaties/verify',
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
      const verdict = await judgeTreaty(body, by);
      return logging(
        verdict,
        'accepted',
        'reason',
        'treaty_id',
        'issuer_sovereign_id',
        'subject_sovereign_id',
      );
    },
  }),
];

/** Unlike in other requests, an empty member counts as present. */
function demandMember(
  body: JsonObject,
  member: string,
  refusal: 'missing_attestation' | 'missing_treaty',
): void {
  if ((body[member] ?? null) === null) throw new Refusal(refusal);
}

/** The policy in the body, even if null; otherwise the one set here. */
async function policyFor(body: JsonObject, edge: Edge): Promise<JsonValue> {
  if (body.recognition_policy !== undefined) return body.recognition_policy;
  const answer = await edge.call('readRecognitionPolicy', {});
  if (!answer.ok) throw new Refusal('missing_recognition_policy');
  return parseJson(answer.json);
}
