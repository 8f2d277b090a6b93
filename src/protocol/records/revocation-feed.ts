/** SovereignRevocationFeed: which attestations a sovereign has revoked [core-5-10]. */
import Type, { type Static } from 'typebox';
import type { VerifySignature } from '../../base/crypto/primitives.ts';
import { sortedSet } from './recognition.ts';
import { Datetime, Natural, recordReader, Signatures } from './record.ts';
import { type CandidateKeys, isSignedByAny } from './signed-record.ts';

export const SovereignRevocationFeed = Type.Object({
  feed_id: Type.String(),
  issuer_sovereign_id: Type.String(),
  sequence: Natural,
  issued_at: Datetime,
  revoked_attestation_ids: Type.Array(Type.String(), { default: [] }),
  revocation_reasons: Type.Unsafe<{ readonly [id: string]: string }>({
    type: 'object',
    additionalProperties: { type: 'string' },
    default: {},
  }),
  issued_by: Type.String(),
  signatures: Signatures,
});

export type SovereignRevocationFeed = Static<typeof SovereignRevocationFeed>;

const readShape = recordReader(SovereignRevocationFeed, ({ revoked_attestation_ids, ...feed }) => {
  const ids = new Set(revoked_attestation_ids);
  return Object.keys(feed.revocation_reasons).every((id) => ids.has(id));
});

/** Reads a feed; its ids are deduplicated and sorted before anything is signed or verified. */
export function readRevocationFeed(received: unknown): SovereignRevocationFeed | null {
  const feed = readShape(received);
  if (feed === null) return null;
  return { ...feed, revoked_attestation_ids: sortedSet(feed.revoked_attestation_ids) };
}

/** The first key found under which a signature of the feed verifies; null if there is none. */
export function keyOfFeed(
  feed: SovereignRevocationFeed,
  keys: CandidateKeys,
  verify: VerifySignature,
): string | null {
  let found: string | null = null;
  isSignedByAny(feed, keys, (key, text, signature) => {
    const verifies = verify(key, text, signature);
    if (verifies) found = key;
    return verifies;
  });
  return found;
}
