/**
 * Membership attestations issued by this authority [core-4-11], and the recognition policy, which lists the issuers
 * that this sovereign recognizes [core-4-12].
 */
import type { Attestation } from '../../../machines/attestation.ts';
import { restoredRevocationId } from '../../../machines/one-record.ts';
import { HOUR_MS } from '../../base/duration.ts';
import { canonicalJson, JsonText, type WithText } from '../../base/json/write.ts';
import { formatInstant, formatInstantIfAny } from '../../base/timestamp.ts';
import type { CallInput } from '../../protocol/contract/calls.ts';
import { type Issuer, keysOf } from '../../protocol/records/issuer.ts';
import {
  type MembershipAttestation,
  readMembershipAttestation,
} from '../../protocol/records/recognition.ts';
import { signRecord } from '../../protocol/records/signed-record.ts';
import { Refusal } from '../../protocol/refusals.ts';
import type { AttestationRow } from '../../protocol/rows/recognition.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import { assertOwnIssuer, costOf, issuerOf, textSignedAgain } from '../engine/issuer.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';
import { pageOf } from '../engine/page.ts';
import { feedEntry } from '../lists/feed.ts';
import { refusalIn } from '../subjects/kinds.ts';
import { statusOf } from './record-lists.ts';

type Terms = CallInput<'issueAttestation'>;

export const issueAttestation: Handler<'issueAttestation'> = (na, unit, terms) => {
  refusePrivateKeys(na, [terms.subject_public_key]);
  const issuer = terms.issuer_sovereign_id ?? na.settings.networkName;
  assertOwnIssuer(na, issuer, 'attestation_issuer_mismatch');
  const record = buildAttestation({ ...issuerOf(na, unit), sovereignId: issuer }, terms);
  const json = canonicalJson(record);
  const attestation: Attestation = {
    json,
    issuer,
    subject: terms.subject_id,
    issuedAt: unit.at,
    revokedAt: null,
    revocationReason: null,
  };
  unit.send('attestation', record.attestation_id, { type: 'issue', attestation });
  unit.audit('membership_attestation_issued', {
    attestation_id: record.attestation_id,
    issuer_sovereign_id: issuer,
    subject_id: terms.subject_id,
    roles: terms.roles,
  });
  return new JsonText(json);
};

/** Builds an attestation, signed in the sovereign's name; the issuer in the terms is ignored. */
export function buildAttestation(issuer: Issuer, terms: Terms): MembershipAttestation {
  const { sovereignId, keyId, now, uuid } = issuer;
  const issuedAt = formatInstant(now);
  const record = readMembershipAttestation({
    attestation_id: uuid(),
    issuer_sovereign_id: sovereignId,
    subject_id: terms.subject_id,
    subject_public_key: terms.subject_public_key,
    roles: terms.roles,
    issued_at: issuedAt,
    valid_from: issuedAt,
    expires_at: formatInstant(now + terms.validity_hours * HOUR_MS),
    issued_by: keyId,
    claims: terms.claims,
  });
  if (record === null) throw new Error('An issued attestation is not a MembershipAttestation');
  return signRecord(record, keysOf(issuer));
}

/** The attestation and the revocation feed change in one transaction. */
export const revokeAttestation: Handler<'revokeAttestation'> = (
  na,
  unit,
  { attestation_id: attestationId, reason },
) => {
  const emitted = unit.send('attestation', attestationId, { type: 'revoke', at: unit.at, reason });
  const refused = refusalIn(emitted);
  if (refused !== null) throw new Refusal(refused.refusal);
  const answer = { attestation_id: attestationId, status: 'revoked' };
  if (emitted.some(({ type }) => type === 'already_revoked')) {
    return { ...answer, already_revoked: true };
  }
  // Before the feed exists: one that does is renewed, even if it was never issued.
  na.signer.assertAvailable();
  const { issuer } = unit.existing('attestation', attestationId);
  na.feeds.of(issuer).issue(unit, [feedEntry(attestationId, reason)]);
  unit.audit('membership_attestation_revoked', { attestation_id: attestationId, reason });
  return answer;
};

export const listAttestations: Handler<'listAttestations'> = (na, given) => {
  const { issuer_sovereign_id: issuer, subject_id: subject, status } = given;
  return pageOf(
    {
      ...na.attestations.matching({ issuer, subject, status }),
      row: ({ context }) => rowOf(na, context),
      lengthOf: ({ context, at }) => costOf(na, context.json, at),
    },
    given,
  );
};

export const readAttestation: Handler<'readAttestation'> = (na, given) => {
  const attestation = na.subjects.committed('attestation', given.attestation_id);
  if (attestation === undefined) throw new Refusal('attestation_not_found');
  return rowOf(na, attestation.context);
};

/** Whether this authority has revoked the attestation, of which a restore may know only the revocation [backup-7]. */
export function isRevokedHere({ subjects }: Authority, attestationId: string): boolean {
  return (
    subjects.committed('attestation', attestationId)?.value === 'revoked' ||
    subjects.committed('restored-revocation', restoredRevocationId('feed', attestationId)) !==
      undefined
  );
}

function rowOf(na: Authority, attestation: Attestation): WithText<AttestationRow, 'attestation'> {
  const { json, issuedAt, revokedAt, revocationReason } = attestation;
  return {
    attestation: new JsonText(textSignedAgain(na, json, issuedAt)),
    status: statusOf(attestation),
    revoked_at: formatInstantIfAny(revokedAt),
    revocation_reason: revocationReason,
  };
}

/** Only one policy is active at a time, so a single subject holds it. */
const ACTIVE_POLICY = 'active';

export const setRecognitionPolicy: Handler<'setRecognitionPolicy'> = (
  na,
  unit,
  { recognition_policy: policy, policy_id: givenId },
) => {
  refusePrivateKeys(
    na,
    policy.recognized_issuers.flatMap(({ public_keys: keys }) => keys),
  );
  const local = policy.local_sovereign_id;
  const policyId = givenId ?? `recognition-${local}`;
  const stored = { policyId, json: canonicalJson(policy), setAt: unit.at };
  unit.send('recognition-policy', ACTIVE_POLICY, { type: 'record', record: stored });
  unit.audit('recognition_policy_saved', {
    policy_id: policyId,
    local_sovereign_id: local,
    recognized_issuer_count: policy.recognized_issuers.length,
  });
  return { policy_id: policyId, local_sovereign_id: local, active: true };
};

export const readRecognitionPolicy: Handler<'readRecognitionPolicy'> = (na) => {
  const policy = na.subjects.committed('recognition-policy', ACTIVE_POLICY);
  if (policy === undefined) throw new Refusal('recognition_policy_not_configured');
  return new JsonText(policy.context.json);
};
