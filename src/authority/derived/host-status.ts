/** What the posture rests on besides committed state. */

import type { DashboardInstance } from '../../protocol/rows/dashboard.ts';
import type { PostureFacts } from '../views/posture.ts';

/** What the authority cannot know from its own state. Instants are milliseconds since the epoch. */
export interface HostStatus {
  /** Bytes free on the disk of the state; null where that is not known. */
  readonly diskFree: number | null;
  /** Bytes free on that disk below which nothing new is enrolled; 0 where that never happens. */
  readonly minFree: number;
  /** When the TLS certificate expires; null where the authority does not speak TLS. */
  readonly tlsNotAfter: number | null;
  /** When the root key's delegation to the authority ends; null where that is not known. */
  readonly delegatedUntil: number | null;
  /** Null where the service makes no backups by itself. */
  readonly backup: PostureFacts['backup'];
  /** Damage that is known of the stored state. */
  readonly damaged: number;
  readonly webhooks: PostureFacts['webhooks'];
  /** Whether signatures of the authority can be had. */
  readonly signs: boolean;
  /** Those that answer together; null where this one is not linked to others. */
  readonly instances: readonly DashboardInstance[] | null;
}

/** What is counted elsewhere for the dashboard. */
export type CountedFacts = Pick<PostureFacts, 'treaties' | 'staleFeeds' | 'trustCycle'>;

export const NOTHING_KNOWN: HostStatus = {
  diskFree: null,
  minFree: 0,
  tlsNotAfter: null,
  delegatedUntil: null,
  backup: null,
  damaged: 0,
  webhooks: [],
  signs: true,
  instances: null,
};

/** Before the first build of the dashboard. */
export const NOTHING_COUNTED: CountedFacts = {
  treaties: { expired: 0, expiring_soon: 0 },
  staleFeeds: 0,
  trustCycle: { status: 'not_observed', freshness: 'none' },
};
