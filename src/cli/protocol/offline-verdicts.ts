/**
 * Verdicts of `verify` commands without an authority: the same as from its public routes, using only the records and
 * keys. Checks that need an authority, such as of revocations, are reported as not made.
 */

import type { JsonObject } from '../../base/json/value.ts';
import type { Runtime } from '../../base/runtime.ts';
import { verifyText } from '../../client/keys.ts';
import type { PublicClient } from '../../client/public-client.ts';
import { portableSha256 } from '../../client/sha256.ts';
import type { FeedIssuer, Verification, Verifier } from '../../protocol/api/verification.ts';
import * as verifications from '../../protocol/api/verifications.ts';
import { keyOfFeed, readRevocationFeed } from '../../protocol/records/revocation-feed.ts';
import { REFUSALS, Refusal } from '../../protocol/refusals.ts';
import { EXIT, failure, usageFailure } from '../kernel/errors.ts';

export type Verifications = Pick<PublicClient, keyof typeof verifications>;

/** Checks that only an authority can make. */
export type Unchecked = 'attestation_revocation' | 'treaty_revocation';

export interface OfflineKnowledge {
  /** The default keys, one of which must have signed records; throws if none is known. */
  authorityKeys(): readonly string[];
  /** The name of that authority's sovereign; null if it is not known. */
  readonly sovereignId: string | null;
  /** The issuer's revocation feed, as received. */
  readonly feed: JsonObject | null;
  readonly runtime: Pick<Runtime, 'now' | 'uuid'>;
}

export function offlineVerdicts({
  authorityKeys,
  sovereignId,
  feed,
  runtime,
}: OfflineKnowledge): Verifications {
  const by: Verifier = {
    now: runtime.now(),
    uuid: runtime.uuid,
    verify: verifyText,
    sha256: portableSha256,
    isBounded: false,
    ownKeys: authorityKeys,
    ownName: sovereignId,
    ownPolicy() {
      throw usageFailure('--offline needs --policy or --treaty');
    },
    askRevocations: ({ attestation }, issuer) => ({
      attestation_revoked_here:
        attestation !== null && revokedBy(feed, issuer).includes(attestation.id),
      attestation_revoked_by_feed: false,
      treaty_revoked: false,
      treaty_keys: [],
    }),
  };
  const ofAttestation: readonly Unchecked[] = feed === null ? ['attestation_revocation'] : [];
  const unchecked: { readonly [name: string]: readonly Unchecked[] } = {
    verifyAttestation: ofAttestation,
    verifyAttestationWithTreaty: ['treaty_revocation', ...ofAttestation],
    verifyTreaty: ['treaty_revocation'],
  };
  const methods = Object.entries(verifications).map(([name, verification]) => {
    const method = async (request: JsonObject) => {
      const verdict = await verdictOf(verification, request, by);
      const missing = unchecked[name];
      return missing === undefined ? verdict : { ...verdict, unchecked: missing };
    };
    return [name, method];
  });
  return Object.fromEntries(methods);
}

/** Returns the verdict; a malformed record fails with the same code as from an authority. */
async function verdictOf(
  { judge }: Verification,
  request: JsonObject,
  by: Verifier,
): Promise<JsonObject> {
  try {
    return (await judge(request, by)).verdict as JsonObject;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { code } = REFUSALS[error.refusal];
    throw failure(EXIT.refused, code, `A record does not have the expected form (${code})`);
  }
}

/** Ids on the feed of this issuer, which must be signed by one of its keys; none without a feed. */
function revokedBy(received: JsonObject | null, { name, keys }: FeedIssuer): readonly string[] {
  if (received === null) return [];
  const feed = readRevocationFeed(received);
  const refused = (reason: string) =>
    failure(EXIT.refused, reason, `The revocation feed is rejected: ${reason}`);
  if (feed === null) throw refused('malformed');
  if (feed.issuer_sovereign_id !== name) throw refused('wrong_issuer');
  if (keyOfFeed(feed, keys, verifyText) === null) throw refused('invalid_signature');
  return feed.revoked_attestation_ids;
}
