/** What clients have learned from answers, and may name in later requests. */
export interface Known {
  readonly invites: KnownInvite[];
  readonly certificates: {
    readonly id: string;
    readonly nodeKey: string;
    readonly roles: readonly string[];
  }[];
  readonly attestations: string[];
  readonly treaties: string[];
}

export interface KnownInvite {
  readonly token: string;
  readonly id: string;
  isUsed: boolean;
}

export function nothingKnown(): Known {
  return { invites: [], certificates: [], attestations: [], treaties: [] };
}
