/** What clients have learned from answers, and may name in later requests. */
import type { MadeSuccession } from './successions.ts';

export interface Known {
  readonly invites: KnownInvite[];
  readonly certificates: {
    readonly id: string;
    readonly nodeKey: string;
    readonly roles: readonly string[];
  }[];
  readonly attestations: string[];
  readonly treaties: string[];
  readonly successions: MadeSuccession[];
  /** How many nodes have not followed, as the authority has last said. */
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
    attestations: [],
    treaties: [],
    successions: [],
    laggards: 0,
  };
}
