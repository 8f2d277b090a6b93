/**
 * The authority's state as plain maps: the reference that a simulation compares with the real one. It follows the state
 * tables of the contract [service-states-and-transitions] and shares no code with the authority. Values are never
 * mutated, so a copy of the maps is a copy of the state.
 */

import type { AuthorityKeys } from './authority-keys.ts';

export type Tier = 'standard' | 'privileged';

export interface Operator {
  readonly tier: Tier;
  readonly isOff: boolean;
}

/** Instants are milliseconds since the epoch, here and below. */
export interface Invite {
  readonly roles: readonly string[];
  readonly maxValidityHours: number;
  readonly expiresAt: number;
  /** The only node key that may use it, or null. */
  readonly recipient: string | null;
  readonly isUsed: boolean;
}

export interface Certificate {
  readonly nodeKey: string;
  readonly roles: readonly string[];
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly maxValidityHours: number;
  readonly renewedAt: number | null;
  readonly supersededFrom: number | null;
  readonly revocation: { readonly at: number; readonly reason: string } | null;
}

export interface Agent {
  readonly isRegistered: boolean;
  /** The current or last registered descriptor. */
  readonly descriptor: string;
  readonly capability: string;
  readonly expiresAt: number;
  /** Descriptors registered earlier than this are refused. */
  readonly newest: number;
  /** Every accepted descriptor with its instant: each counts only once. */
  readonly accepted: ReadonlySet<string>;
}

export interface Attestation {
  readonly issuer: string;
  readonly subject: string;
  readonly reason: string | null;
}

export interface Treaty {
  readonly subject: string;
  readonly subjectKey: string;
  readonly expiresAt: number;
  readonly revokedAt: number | null;
  readonly reason: string | null;
}

/** A signed list that is republished with increasing sequence numbers. */
export interface Publication {
  readonly sequence: number;
  readonly issuedAt: number;
}

export interface State {
  readonly operators: Map<string, Operator>;
  readonly invites: Map<string, Invite>;
  readonly certificates: Map<string, Certificate>;
  /** The number of certificates issued, including removed ones. */
  issued: number;
  /** Ids of revoked certificates, in the order of the revocation list. */
  readonly revoked: Set<string>;
  /** Compromised keys for which no certificate records the compromise. */
  readonly compromised: Set<string>;
  /** `crl`, and the feed of each issuer. */
  readonly publications: Map<string, Publication>;
  /** Policy ids, with the time of their last publication. */
  readonly policies: Map<string, number>;
  activePolicy: string | null;
  /** By node key. */
  readonly agents: Map<string, Agent>;
  readonly attestations: Map<string, Attestation>;
  readonly treaties: Map<string, Treaty>;
  recognitionPolicy: string | null;
  /** The highest sequence imported from each issuer. */
  readonly importedFeeds: Map<string, number>;
  /** `issuer id` of every attestation that an imported feed revoked. */
  readonly importedIds: Set<string>;
  readonly nullified: Set<string>;
  authority: AuthorityKeys;
  /** `scope nonce` of every accepted request. */
  readonly spent: Set<string>;
  /** How many audit entries each kind of success has written. */
  readonly audited: Map<string, number>;
}

export function emptyState(
  operators: Iterable<readonly [string, Tier]>,
  authority: AuthorityKeys,
): State {
  return {
    authority,
    operators: new Map([...operators].map(([id, tier]) => [id, { tier, isOff: false }])),
    invites: new Map(),
    certificates: new Map(),
    issued: 0,
    revoked: new Set(),
    compromised: new Set(),
    publications: new Map(),
    policies: new Map(),
    activePolicy: null,
    agents: new Map(),
    attestations: new Map(),
    treaties: new Map(),
    recognitionPolicy: null,
    importedFeeds: new Map(),
    importedIds: new Set(),
    nullified: new Set(),
    spent: new Set(),
    audited: new Map(),
  };
}

/** Ids that the authority chose for what a request created, by kind of subject. */
export type Made = (kind: string) => readonly string[];

/** A self-contained change of state: it is applied to the decided state and later to the visible one. */
export type Change = (state: State, made: Made) => void;

/** How a request may end. */
export interface Outcome {
  readonly refusal: string | null;
  /** Members that the answer must have. */
  readonly answer: (made: Made) => { readonly [member: string]: unknown };
  /** Null if nothing has to be stored before the answer is sent. */
  readonly change: Change | null;
  /** Whether the signing keys change. */
  readonly changesSigners?: true;
}

/** The circumstances in which a request is decided. */
export interface Moment {
  /** Includes every decision, whether or not it is on disk. */
  readonly state: State;
  /** Includes only what was answered, which is all that readers see. */
  readonly shown: State;
  /** When the edge checked the request, and when the authority decides it. */
  readonly edgeNow: number;
  readonly now: number;
  /**
   * Whether nonces of requests signed at that time may be forgotten, because the clock was set back: such requests are
   * refused.
   */
  readonly mayBeForgotten: (signedAt: number) => boolean;
  /** Node requests signed up to this instant may be refused, because a restart forgot their nonces. */
  readonly forgottenUntil: (nodeKey: string) => number;
  /** Whether a node has sent this nonce before: genuine requests that are refused use up theirs, too. */
  readonly wasTried: (nonce: string) => boolean;
  /** Whether the request was accepted before, by this process or an earlier one. */
  readonly wasAccepted: (scope: string, nonce: string) => boolean;
  /** Whether an accepted heartbeat may count once more, because the clock was set back since. */
  readonly mayCountAgain: (nodeKey: string, signedAt: number) => boolean;
  /** Whether the authority has this private key. */
  readonly isHeld: (publicKey: string) => boolean;
  /** Whether it is an operator's key. */
  readonly isOperator: (publicKey: string) => boolean;
  /** How many nodes have not followed the last succession. */
  readonly laggards: () => { readonly least: number; readonly most: number };
}

export function refused(refusal: string, change: Change | null = null): Outcome {
  return { refusal, change, answer: () => ({}) };
}

/** A success that is stored, with its audit entries. */
export function stored(
  event: string,
  change: Change,
  answer: Outcome['answer'] = () => ({}),
  entries = 1,
): Outcome {
  return {
    refusal: null,
    answer,
    change: (state, made) => {
      change(state, made);
      state.audited.set(event, (state.audited.get(event) ?? 0) + entries);
    },
  };
}

/** A success that stores nothing. */
export function answered(answer: Outcome['answer'] = () => ({})): Outcome {
  return { refusal: null, change: null, answer };
}

/** The same with one more entry in the audit log. */
export function alsoAudited(outcome: Outcome, event: string): Outcome {
  return also(outcome, ({ audited }) => {
    audited.set(event, (audited.get(event) ?? 0) + 1);
  });
}

export function also(outcome: Outcome, change: Change): Outcome {
  return {
    ...outcome,
    change: (state, made) => {
      change(state, made);
      outcome.change?.(state, made);
    },
  };
}
