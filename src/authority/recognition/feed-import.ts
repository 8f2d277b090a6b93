/** Imports another sovereign's revocation feed [core-4-14]. */
import type { ImportedFeed, ImportedFeedRefusal } from '../../../machines/revocation-feed.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { VerifiedFeed } from '../../protocol/contract/inputs.ts';
import { Refusal, type RefusalName } from '../../protocol/refusals.ts';
import type { Handler } from '../engine/admission.ts';
import { refusePrivateKeys } from '../engine/known-keys.ts';
import { refusalIn } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import { treatyKeysOf } from './treaties.ts';

/** The keys that verify an issuer's feed if the importer does not name any. */
export const treatyKeys: Handler<'treatyKeys'> = (na, { issuer }, at) => [
  ...new Set(treatyKeysOf(na, issuer, at)),
];

/**
 * All ids of a feed are stored as one subject, exactly as the edge serialized them. After the commit, they are indexed in
 * slices, and the answer waits for that.
 */
export const importFeed: Handler<'importFeed'> = (na, unit, feed) => {
  const { issuer, feedId, revokedCount, rows, issuer_public_keys: given } = feed;
  refusePrivateKeys(na, given ?? []);
  const keys = given ?? treatyKeysOf(na, issuer, unit.at);
  if (keys.length === 0) {
    throw new Refusal('missing_issuer_public_keys', { issuer_sovereign_id: issuer });
  }
  if ((feed.expected_issuer_sovereign_id ?? issuer) !== issuer) {
    reject(unit, feed, 'wrong_issuer', 'wrong_issuer');
  }
  const sequence = String(feed.sequence);
  const imported: ImportedFeed = { sequence, feedId, revokedCount, importedAt: unit.at, issuer };
  const refused = refusalIn(
    unit.send('revocation-feed', sha256Hex(issuer), {
      type: 'import',
      feed: imported,
      signature: judgeSignature(feed, keys),
    }),
  );
  if (refused !== null) reject(unit, feed, refused.refusal, REASONS[refused.refusal]);
  if (rows.length > 0) {
    const slot = na.importedFeeds.takeSlot(issuer);
    const stored = { issuer, feedId, sequence, revokedAt: unit.at, rows };
    unit.send('revocation-import', slot, { type: 'record', record: stored });
    unit.whenCommitted(() => na.importedFeeds.absorb(slot, stored));
  }
  const about = { ...detailsOf(feed), revoked_count: revokedCount };
  unit.audit('sovereign_revocation_feed_imported', about);
  return { accepted: true, reason: 'accepted', ...about };
};

/** The edge has already verified the signature; this checks whether the key is an accepted one. */
function judgeSignature({ isSigned, verifiedUnder }: VerifiedFeed, keys: readonly string[]) {
  if (!isSigned) return 'missing_signature';
  return verifiedUnder !== null && keys.includes(verifiedUnder) ? 'valid' : 'invalid_signature';
}

const REASONS = {
  stale_sequence: 'stale_sequence',
  missing_feed_signature: 'missing_signature',
  invalid_feed_signature: 'invalid_signature',
} as const satisfies Record<ImportedFeedRefusal, string>;

function reject(unit: UnitOfWork, feed: VerifiedFeed, refusal: RefusalName, reason: string): never {
  unit.audit('sovereign_revocation_feed_rejected', { ...detailsOf(feed), reason });
  throw new Refusal(refusal, detailsOf(feed));
}

function detailsOf({ feedId, issuer, sequence }: VerifiedFeed) {
  return { feed_id: feedId, issuer_sovereign_id: issuer, sequence };
}
