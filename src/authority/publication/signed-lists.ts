/** The signed lists and the bulletin as calls use them: keep them current, and publish them again after a start. */
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson, JsonText } from '../../base/json/write.ts';
import type { Handler } from '../engine/admission.ts';
import type { Authority } from '../engine/authority.ts';
import type { Run } from '../engine/execute.ts';
import { assertOwnIssuer } from '../engine/issuer.ts';
import { feedRecord, feedSubjectId, signFeed } from '../lists/feed.ts';

/** Makes the list of certificates current: issues the first, empty one, or re-issues it at half of its lifetime. */
export const refreshCrl: Handler<'refreshCrl'> = (na, unit) => {
  na.revocations.list.renew(unit);
  return null;
};

/** The same of our own feed. */
export const refreshFeed: Handler<'refreshFeed'> = (na, unit) => {
  na.feeds.of(na.settings.networkName).renew(unit);
  return null;
};

/** Re-issues every feed whose lifetime is half over. */
export const refreshFeeds: Run<null> = (na, unit) => {
  refreshFeed(na, unit, null);
  for (const feed of na.feeds.all()) feed.renew(unit);
  return null;
};

/**
 * Makes the feed of another issuer current. Returns a feed without a version as the answer; others are
 * published under their name, and null is returned.
 */
export const refreshForeignFeed: Handler<'refreshForeignFeed'> = (na, unit, { issuer }) => {
  assertOwnIssuer(na, issuer, 'feed_issuer_mismatch');
  if (unit.current('sovereign-feed', feedSubjectId(issuer)) === undefined) {
    return new JsonText(canonicalJson(signFeed(emptyFeed(na, issuer), na.signer)));
  }
  na.feeds.of(issuer).renew(unit);
  return null;
};

/** Anyone may request a feed of any name, so it is derived from the name alone and nothing is stored. */
function emptyFeed(na: Authority, issuer: string): JsonObject {
  const digest = sha256Hex(`empty-revocation-feed\n${issuer}`);
  const feedId = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-5$3-8$4-$5');
  const head = { issuer, sequence: 0, feedId, issuedAt: na.settings.foundedAt };
  return feedRecord(na.signer, head, new Map());
}

export const refreshBulletin: Handler<'refreshBulletin'> = (na, unit) => {
  na.bulletin.keepCurrent(unit.at);
  return null;
};

/** After a start. The feeds come first: they recognize a first start by the absence of the list of certificates. */
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
