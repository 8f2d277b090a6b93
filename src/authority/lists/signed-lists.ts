/** Calls that keep the signed lists and the bulletin current, and publish the lists again after a restart. */
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson, JsonText } from '../../base/json/write.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import type { Run } from '../engine/execute.ts';
import { assertOwnIssuer } from '../engine/issuer.ts';
import { feedRecord, feedSubjectId, signFeed } from './feed.ts';

/** Keeps the CRL current: issues the first, empty one, and re-issues it after half of its lifetime. */
export const refreshCrl: Handler<'refreshCrl'> = (na, unit) => {
  na.revocations.list.renew(unit);
  return null;
};

/** Does the same for our own feed. */
export const refreshFeed: Handler<'refreshFeed'> = (na, unit) => {
  na.feeds.of(na.settings.networkName).renew(unit);
  return null;
};

/** Re-issues every feed that has reached half of its lifetime. */
export const refreshFeeds: Run<null> = (na, unit) => {
  refreshFeed(na, unit, null);
  for (const feed of na.feeds.all()) feed.renew(unit);
  return null;
};

/**
 * Keeps the feed of another issuer current. If no version of the feed exists, returns an empty feed as the answer;
 * otherwise publishes the feed under its own name and returns null.
 */
export const refreshForeignFeed: Handler<'refreshForeignFeed'> = (na, unit, { issuer }) => {
  assertOwnIssuer(na, issuer, 'feed_issuer_mismatch');
  if (unit.current('sovereign-feed', feedSubjectId(issuer)) === undefined) {
    return new JsonText(canonicalJson(signFeed(emptyFeed(na, issuer), na.signer)));
  }
  na.feeds.of(issuer).renew(unit);
  return null;
};

/** Anyone may request a feed under any name, so it is derived from the name alone, and nothing is stored. */
function emptyFeed(na: Authority, issuer: string): JsonObject {
  const digest = sha256Hex(`empty-revocation-feed\n${issuer}`);
  const feedId = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-5$3-8$4-$5');
  // The same before and after a succession, because a sequence never names two contents.
  const { network_authority } = na.authorityKeys.chain().first ?? na.settings.genesis;
  const issuedAt = instantOf(network_authority.valid_from);
  const head = { issuer, sequence: 0, feedId, issuedAt };
  return feedRecord({ publicKey: network_authority.public_key }, head, new Map());
}

export const refreshBulletin: Handler<'refreshBulletin'> = (na, unit) => {
  na.bulletin.keepCurrent(unit.at);
  return null;
};

/** Runs after a start. Feeds come first, because they recognize a first start by the absence of a CRL. */
export const RESTORE_LISTS: readonly Run<null>[] = [
  (na, unit) => {
    for (const feed of na.feeds.all()) feed.restore(unit);
    return refreshFeeds(na, unit, null);
  },
  (na, unit) => {
    na.revocations.list.restore(unit);
    return refreshCrl(na, unit, null);
  },
];
