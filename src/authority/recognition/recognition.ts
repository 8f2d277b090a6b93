/**
 * Whom this sovereign recognizes: the recognition policy (wire rules 4.12), imported revocation feeds
 * (4.14), and what verification and the graph views read of them (6.2 to 6.4).
 */
import type { ImportedFeed, ImportedFeedRefusal } from '../../../machines/revocation-feed.ts';
import type { RevocationKnowledge } from '../../contract/inputs.ts';
import { sha256Hex } from '../../crypto/digest.ts';
import { canonicalJson, JsonText } from '../../json/write.ts';
import type { SovereignRevocationFeed } from '../../records/revocation-feed.ts';
import { isSignedByAny } from '../../records/signed-record.ts';
import { Refusal, type RefusalName } from '../../refusal.ts';
import type { Handler } from '../engine/admission.ts';
import { refusalIn } from '../engine/refusals.ts';
import type { UnitOfWork } from '../engine/unit-of-work.ts';
import { checksOfCommand } from '../protocol/signature-checks.ts';
import { isRevokedHere } from './attestations.ts';
import { isTreatyRevoked, treatyKeysOf } from './treaties.ts';

/** One policy is active at a time, so one subject holds it. */
const ACTIVE_POLICY = 'active';

export const setRecognitionPolicy: Handler<'setRecognitionPolicy'> = (
  _na,
  unit,
  { policy, policyId: givenId },
) => {
  const local = policy.local_sovereign_id;
  const policyId = givenId ?? `recognition-${local}`;
  const stored = { policyId, json: canonicalJson(policy), setAt: unit.at };
  unit.send('recognition-policy', ACTIVE_POLICY, { type: 'set', policy: stored });
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

export const importFeed: Handler<'importFeed'> = (
  na,
  unit,
  { feed, issuerKeys, expectedIssuer },
) => {
  const issuer = feed.issuer_sovereign_id;
  const keys = issuerKeys ?? treatyKeysOf(na, issuer, unit.at);
  if (keys.length === 0) {
    throw new Refusal('missing_issuer_public_keys', { issuer_sovereign_id: issuer });
  }
  if (expectedIssuer !== null && expectedIssuer !== issuer) {
    rejectFeed(unit, feed, 'wrong_issuer', 'wrong_issuer');
  }
  const imported: ImportedFeed = {
    sequence: String(feed.sequence),
    feedId: feed.feed_id,
    revokedCount: feed.revoked_attestation_ids.length,
    importedAt: unit.at,
    issuer,
  };
  const refused = refusalIn<ImportedFeedRefusal>(
    unit.send('revocation-feed', sha256Hex(issuer), {
      type: 'import',
      feed: imported,
      signature: judgeSignature(feed, keys),
    }),
  );
  if (refused !== null) rejectFeed(unit, feed, refused.refusal, FEED_REASONS[refused.refusal]);
  for (const attestationId of feed.revoked_attestation_ids) {
    const revocation = {
      issuer,
      attestationId,
      feedId: feed.feed_id,
      sequence: imported.sequence,
      reason: reasonOf(feed, attestationId),
      revokedAt: unit.at,
    };
    const id = sha256Hex(`${issuer}\n${attestationId}`);
    unit.send('imported-revocation', id, { type: 'revoke', revocation });
  }
  const about = { ...feedDetails(feed), revoked_count: imported.revokedCount };
  unit.audit('sovereign_revocation_feed_imported', about);
  return { accepted: true, reason: 'accepted', ...about };
};

const FEED_REASONS = {
  stale_sequence: 'stale_sequence',
  missing_feed_signature: 'missing_signature',
  invalid_feed_signature: 'invalid_signature',
} as const satisfies Record<ImportedFeedRefusal, string>;

export function judgeSignature(feed: SovereignRevocationFeed, keys: readonly string[]) {
  if (feed.signatures.length === 0) return 'missing_signature';
  return isSignedByAny(feed, keys, checksOfCommand()) ? 'valid' : 'invalid_signature';
}

function rejectFeed(
  unit: UnitOfWork,
  feed: SovereignRevocationFeed,
  refusal: RefusalName,
  reason: string,
): never {
  unit.audit('sovereign_revocation_feed_rejected', { ...feedDetails(feed), reason });
  throw new Refusal(refusal, feedDetails(feed));
}

/** Ids are any text, also names that every object has a member of. */
function reasonOf({ revocation_reasons: reasons }: SovereignRevocationFeed, id: string) {
  return Object.hasOwn(reasons, id) ? (reasons[id] ?? null) : null;
}

function feedDetails({ feed_id, issuer_sovereign_id, sequence }: SovereignRevocationFeed) {
  return { feed_id, issuer_sovereign_id, sequence };
}

export const askRevocations: Handler<'askRevocations'> = (na, { attestation, treatyId }) => {
  const knowledge: RevocationKnowledge = {
    attestation_revoked_here: attestation !== null && isRevokedHere(na, attestation.id),
    attestation_revoked_by_feed:
      attestation !== null && na.recognition.revocationsOf(attestation.issuer).has(attestation.id),
    treaty_revoked: treatyId !== null && isTreatyRevoked(na, treatyId),
  };
  return { ...knowledge };
};
