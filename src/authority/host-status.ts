/** Inputs of the posture that do not come from committed state, and the room on the disk. */

import { Refusal } from '../protocol/refusals.ts';
import type { DashboardInstance } from '../protocol/rows/dashboard.ts';

/** Durations are in milliseconds, and instants are in milliseconds since the epoch. */
export interface BackupFacts {
  /** The time between two backups. */
  readonly every: number;
  /** When the newest verified backup was created; null before the first one. */
  readonly verifiedAt: number | null;
  /** When the service started to watch the schedule. */
  readonly since: number;
}

/** A webhook, and how far the audit log was posted to it. Instants are in milliseconds since the epoch. */
export interface WebhookFacts {
  /** Host and port of its address. */
  readonly host: string;
  /** The index of the last event that it accepted. */
  readonly delivered: number;
  /** When it stopped accepting events; null while it accepts them. */
  readonly failingSince: number | null;
  /** When the first event that it has not accepted yet was logged; null if it has accepted everything it was sent. */
  readonly waitingSince: number | null;
}

/** The authority of another sovereign, as it was fetched. Instants are in milliseconds since the epoch. */
export interface PartnerFacts {
  readonly subject: string;
  readonly endpoint: string;
  /** When everything was last fetched and accepted; null if it was not since this instance became active. */
  readonly fetchedAt: number | null;
  /** Null while it can be fetched. */
  readonly failingSince: number | null;
  readonly problem: { readonly text: string; readonly isRefused: boolean } | null;
}

export function partnerKey(subject: string, endpoint: string): string {
  return `${endpoint} ${subject}`;
}

/** Facts that the authority cannot derive from its own state. Instants are in milliseconds since the epoch. */
export interface HostStatus {
  /** Free bytes on the disk that holds the state; null if unknown. */
  readonly diskFree: number | null;
  /** Enrollment stops when the disk has fewer free bytes than this; 0 if it never stops. */
  readonly minFree: number;
  /** When the TLS certificate expires; null if the authority does not use TLS. */
  readonly tlsNotAfter: number | null;
  /** When the root key's delegation to the authority ends; null if unknown. */
  readonly delegatedUntil: number | null;
  /** Null if the service does not make backups itself. */
  readonly backup: BackupFacts | null;
  readonly webhooks: readonly WebhookFacts[];
  /** By `partnerKey`. */
  readonly partners: ReadonlyMap<string, PartnerFacts>;
  /** Whether the authority's signer is available. */
  readonly signs: boolean;
  /** The instances that serve together; null if this one is not linked to others. */
  readonly instances: readonly DashboardInstance[] | null;
  /** How many linked instances have not said that they hold this key. */
  instancesWithout(publicKey: string): number;
}

export const NOTHING_KNOWN: HostStatus = {
  diskFree: null,
  minFree: 0,
  tlsNotAfter: null,
  delegatedUntil: null,
  backup: null,
  webhooks: [],
  partners: new Map(),
  signs: true,
  instances: null,
  instancesWithout: () => 0,
};

interface HostStatusSource {
  hostStatus(): HostStatus;
}

/**
 * Checks whether there is enough disk space for newcomers: invites, joins and first registrations of agents. On a
 * nearly full disk, the remaining space is reserved for enrolled nodes and for revocations [core-4-2-1].
 */
export function hasRoom({ hostStatus }: HostStatusSource): boolean {
  const { diskFree, minFree } = hostStatus();
  return diskFree === null || diskFree >= minFree;
}

/** Throws `insufficient_storage`. */
export function assertRoom(na: HostStatusSource): void {
  if (!hasRoom(na)) throw new Refusal('insufficient_storage');
}
