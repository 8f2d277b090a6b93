/**
 * A revocation feed that we sign [core-4-14], [core-g24]: its entries are the attestations of one issuer that
 * were revoked here.
 */
import { type SequenceEvent, type SequenceVersion, sequenceMachine } from './signed-sequence.ts';

export interface SovereignFeed extends SequenceVersion {
  readonly issuer: string;
  readonly feedId: string;
}

export type SovereignFeedEvent = SequenceEvent<SovereignFeed>;

/** Gateways refuse a feed that is older than a day. */
const HALF_DAY = 12 * 3_600_000;

export const sovereignFeedMachine = sequenceMachine<SovereignFeed>({
  id: 'sovereign-feed',
  none: { issuer: '', sequence: -1, feedId: '', issuedAt: 0, digest: '' },
  // Our own feed begins empty, with 0; that of another issuer with the first attestation revoked.
  firsts: [0, 1],
  published: 'published',
  halfOver: ({ issuedAt }) => issuedAt + HALF_DAY,
});
