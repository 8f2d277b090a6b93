/**
 * A revocation feed signed by this authority [core-4-14], [core-g24]: its entries are the attestations of one issuer
 * that were revoked here.
 */
import { type SequenceVersion, sequenceMachine } from './signed-sequence.ts';

export interface SovereignFeed extends SequenceVersion {
  readonly issuer: string;
  readonly feedId: string;
}

/** Gateways refuse a feed that is older than a day. */
const HALF_DAY = 12 * 3_600_000;

export const sovereignFeedMachine = sequenceMachine<SovereignFeed>({
  id: 'sovereign-feed',
  none: { issuer: '', sequence: -1, feedId: '', issuedAt: 0, digest: '' },
  // Our own feed starts empty, at 0; a feed for another issuer starts with the first revoked attestation.
  firsts: [0, 1],
  published: 'published',
  halfOver: ({ issuedAt }) => issuedAt + HALF_DAY,
});
