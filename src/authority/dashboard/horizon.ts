/**
 * Upcoming expirations of counted records, the delegation, the TLS certificate, the data-license policy and the feeds of
 * sovereigns that cannot be fetched, and the times of a succession [core-4-20].
 */
import type { LicensePolicy } from '../../../machines/one-record.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { Writable } from '../../base/json/write.ts';
import type { Authority } from '../authority.ts';
import { committedChain } from '../authority-keys.ts';
import type { Counted } from '../census.ts';
import { type EndTallies, EndTally, horizonOf } from '../end-tally.ts';
import type { Handler } from '../engine/admission.ts';
import { Sliced } from '../subjects/sliced.ts';

export const WATCH_HOURS = 72;
/** When an imported feed is stale; ages are in whole hours. */
export const FEED_STALE_MS = (WATCH_HOURS + 1) * 3_600_000;

export const readHorizon: Handler<'readHorizon'> = (na) => new Sliced(horizon(na));

function* horizon(na: Authority): Generator<void, Writable> {
  // A large fleet is counted in the background, and the answer says as of when.
  void na.census.take();
  const counted = na.census.latest() ?? (yield* na.census.current());
  return horizonOf(endsOf(na, counted), counted.asOf);
}

/** All expirations, as of the time of the count. */
export function endsOf(na: Authority, { asOf, ends }: Pick<Counted, 'asOf' | 'ends'>): EndTallies {
  const { delegatedUntil, tlsNotAfter } = na.hostStatus();
  const { activation, overlap } = successionEnds(na);
  return {
    delegation: single(delegatedUntil, asOf),
    activation: single(activation, asOf),
    overlap: single(overlap, asOf),
    tls: single(tlsNotAfter, asOf),
    ...ends,
    partner: tallyOf(partnerEnds(na), asOf),
    policy: single(policyEnd(na), asOf),
  };
}

/** The soonest expiration of each kind, in milliseconds since the epoch; counted kinds are as of the last count. */
export function soonestEnds(na: Authority): { readonly [kind: string]: number } {
  const counted = na.census.latest()?.ends;
  const { delegatedUntil, tlsNotAfter } = na.hostStatus();
  const ends = {
    delegation: delegatedUntil,
    ...successionEnds(na),
    tls: tlsNotAfter,
    certificate: counted?.certificate.soonest ?? null,
    treaty: counted?.treaty.soonest ?? null,
    attestation: counted?.attestation.soonest ?? null,
    partner: Math.min(...partnerEnds(na)),
    policy: policyEnd(na),
  };
  return Object.fromEntries(
    Object.entries(ends).filter((end): end is [string, number] => Number.isFinite(end[1])),
  );
}

/** Singletons count even after they expire. */
function single(end: number | null, asOf: number): EndTally {
  return tallyOf(end === null ? [] : [end], asOf);
}

function tallyOf(ends: readonly number[], asOf: number): EndTally {
  const tally = new EndTally(asOf);
  for (const end of ends) tally.add(end);
  return tally;
}

/** When the last feeds of those that cannot be fetched are stale; without one, since when they cannot be. */
function partnerEnds({ hostStatus, subjects }: Authority): number[] {
  return [...hostStatus().partners.values()].flatMap(({ subject, failingSince }) => {
    if (failingSince === null) return [];
    const feed = subjects.committed('revocation-feed', sha256Hex(subject))?.context;
    return [feed === undefined ? failingSince : feed.importedAt + FEED_STALE_MS];
  });
}

/** When the staged key takes over, and when the previous key stops signing; null if there is no such key. */
function successionEnds(na: Authority) {
  const { staged, previous } = committedChain(na);
  return { activation: staged?.activatesAt ?? null, overlap: previous?.overlapUntil ?? null };
}

function policyEnd({ license }: Authority): number | null {
  const policy = license.policy?.context as LicensePolicy | undefined;
  return policy?.validUntil ?? null;
}
