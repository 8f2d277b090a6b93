/**
 * The signed feeds of attestations revoked by this authority [core-4-14]: our own, and one for each other issuer in
 * whose name we issue attestations. Each feed is a signed list of the revoked attestations.
 */
import type { Attestation } from '../../../machines/attestation.ts';
import type { RestoredRevocation } from '../../../machines/one-record.ts';
import type { SovereignFeed } from '../../../machines/signed-sequence.ts';
import type { Resting } from '../../../machines/step.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import type { JsonObject } from '../../base/json/value.ts';
import { canonicalJson, JsonText } from '../../base/json/write.ts';
import { formatInstant } from '../../base/timestamp.ts';
import { foreignFeedName } from '../../protocol/contract/documents.ts';
import { sortedSet } from '../../protocol/records/recognition.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { labeledByKey, signRecord } from '../../protocol/records/signed-record.ts';
import type { Authority } from '../authority.ts';
import type { Handler } from '../engine/admission.ts';
import type { Run } from '../engine/execute.ts';
import { assertOwnIssuer } from '../engine/issuer.ts';
import type { Subject } from '../subjects/kinds.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { ListEntry } from './list-document.ts';
import {
  createSignedList,
  type EntryDigest,
  type ListServices,
  type Revocable,
  type SignedList,
} from './signed-list.ts';

export type Feeds = ReturnType<typeof createFeeds>;

interface FeedsOptions extends ListServices {
  readonly ownName: string;
}

export function createFeeds(options: FeedsOptions) {
  const feeds = new Map<string, SignedList>();
  let isLoading = true;

  function feedOf(issuer: string): SignedList {
    const known = feeds.get(issuer);
    if (known !== undefined) return known;
    const feed = createFeed(issuer, options);
    if (!isLoading) feed.endLoading();
    feeds.set(issuer, feed);
    return feed;
  }

  return {
    /** The feed of an issuer, created if it does not exist. */
    of: feedOf,
    /** All existing feeds. */
    all: (): Iterable<SignedList> => [...feeds.values()],
    /** Follows a decided change of an attestation or a restored revocation. */
    decided(kind: Revocable<'attestation'>, id: string, { value, context }: Resting) {
      const revoked = attestationRevokedBy({ kind, id, value, context });
      if (revoked !== null) feedOf(revoked.issuer).decided({ sequence: 0, entry: revoked.entry });
    },
    committed(id: string, { value, context }: Subject<'attestation'>) {
      if (value === 'revoked') feeds.get(context.issuer)?.committed(id);
    },
    /** Call after everything was loaded from the store, and before anything is decided. */
    endLoading() {
      isLoading = false;
      for (const feed of feeds.values()) feed.endLoading();
    },
  };
}

/** A revoked attestation, as stored. */
export interface RevokedAttestation {
  readonly issuer: string;
  readonly entry: ListEntry;
}

/** The entry that a subject adds to an issuer's feed, if any. */
export function attestationRevokedBy({
  kind,
  id,
  value,
  context,
}: Resting & { readonly kind: string; readonly id: string }): RevokedAttestation | null {
  if (value !== 'revoked') return null;
  if (kind === 'attestation') {
    const { issuer, revocationReason } = context as Attestation;
    return { issuer, entry: feedEntry(id, revocationReason) };
  }
  if (kind !== 'restored-revocation') return null;
  const { list, issuer, revokedId, reason } = context as RestoredRevocation;
  return list === 'feed' ? { issuer, entry: feedEntry(revokedId, reason) } : null;
}

/** The description of a feed whose entries are not the signed ones. */
export function feedDamage(issuer: string): string {
  return `its revoked attestations are not those of the published feed of ${issuer}`;
}

function createFeed(issuer: string, { ownName, ...services }: FeedsOptions): SignedList {
  const { publisher, uuid } = services;
  const id = feedSubjectId(issuer);
  const name = issuer === ownName ? 'sovereign_revocation_feed' : foreignFeedName(issuer);
  return createSignedList<SovereignFeed>({
    ...services,
    form: 'feed',
    damage: feedDamage(issuer),
    digest: createSetDigest(),
    first: (unit) => (issuer === ownName && isFirstStart(unit) ? 0 : 1),
    current: (unit) => unit.current('sovereign-feed', id)?.context,
    send: (unit, event) => unit.send('sovereign-feed', id, event),
    next: ({ at }, sequence, digest) => ({
      issuer,
      sequence,
      feedId: uuid(),
      issuedAt: at,
      digest,
    }),
    headOf: (version) => ({ form: 'feed', ...version }),
    publish: (document) => publisher.publish(name, document),
    withdraw() {
      // Feeds under other names are renewed before each answer.
      if (issuer === ownName) publisher.withdraw('sovereign_revocation_feed');
    },
  });
}

/**
 * Only a first start issues sequence 0. Otherwise, an empty feed may have been served as sequence 0 without being
 * stored, and sequence 0 must never name a different feed.
 */
function isFirstStart(unit: UnitOfWork): boolean {
  return unit.current('crl', 'certificates') === undefined;
}

export function feedEntry(attestationId: string, reason: string | null): ListEntry {
  return { id: attestationId, text: canonicalJson(reason ?? 'unspecified') };
}

const MODULUS_BITS = 256;

/**
 * The sum of the entries' digests, which does not depend on their order. Adding an entry costs the same no matter how
 * many there are. The digest detects damage, not forgery: all entries are our own.
 */
export function createSetDigest(): EntryDigest {
  let sum = 0n;
  return {
    add(entry) {
      sum = BigInt.asUintN(MODULUS_BITS, sum + digestOf(entry));
    },
    value(added) {
      const whole = added.reduce((total, entry) => total + digestOf(entry), sum);
      return `sum:${BigInt.asUintN(MODULUS_BITS, whole).toString(16).padStart(64, '0')}`;
    },
  };
}

function digestOf({ id, text }: ListEntry): bigint {
  return BigInt(`0x${sha256Hex(`${canonicalJson(id)}:${text}`)}`);
}

/** A feed without its signature. */
export function feedRecord(
  { publicKey }: Pick<RecordSigner, 'publicKey'>,
  { issuer, sequence, feedId, issuedAt }: Omit<SovereignFeed, 'digest'>,
  entries: ReadonlyMap<string, string>,
) {
  return {
    feed_id: feedId,
    issuer_sovereign_id: issuer,
    sequence,
    issued_at: formatInstant(issuedAt),
    revoked_attestation_ids: sortedSet([...entries.keys()]),
    revocation_reasons: Object.fromEntries(entries),
    issued_by: publicKey,
  };
}

/** A feed's signature is labeled with the public key, regardless of the key's configured label. */
export function signFeed<T extends JsonObject>(record: T, signer: RecordSigner) {
  return signRecord(record, labeledByKey(signer));
}

/** Names of sovereigns are free text, which store keys may not be. */
export function feedSubjectId(issuer: string): string {
  return sha256Hex(issuer);
}

/** Keeps our own feed current, as `refreshCrl` does the CRL. */
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
