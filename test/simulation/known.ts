/** What clients have learned from answers, and may name in later requests. */
import type { KnownSession } from './session-beats.ts';
import type { MadeSuccession } from './successions.ts';

export interface Known {
  readonly invites: KnownInvite[];
  readonly certificates: {
    readonly id: string;
    readonly nodeKey: string;
    readonly roles: readonly string[];
  }[];
  /** Heartbeat sessions. */
  readonly sessions: KnownSession[];
  readonly attestations: string[];
  readonly treaties: string[];
  readonly successions: MadeSuccession[];
  /** How many nodes had not followed, according to the authority's last answer. */
  laggards: number;
}

export interface KnownInvite {
  readonly token: string;
  readonly id: string;
  isUsed: boolean;
}

export function nothingKnown(): Known {
  return {
    invites: [],
    certificates: [],
    sessions: [],
    attestations: [],
    treaties: [],
    successions: [],
    laggards: 0,
  };
}
