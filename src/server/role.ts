/** The role of an instance: it is a standby (`standby.ts`) or active (`active.ts`). */
import type { HostStatus } from '../authority/host-status.ts';
import type { OpenAuthority } from '../authority/open.ts';
import type { Call } from '../protocol/contract/calls.ts';

export interface Role {
  /** The authority; null if another instance is active. */
  readonly call: Call | null;
  readonly clockSet: OpenAuthority['clockSet'];
  readonly seal: OpenAuthority['seal'];
  /** Null without a backup schedule. */
  backupFacts(): HostStatus['backup'];
  webhooks(): HostStatus['webhooks'];
  partners(): HostStatus['partners'];
  /** Ends the processes that read the state and what other sovereigns are fetched for, and prevents new ones. */
  endReaders(): void;
  /** Flushes for the last time and releases the state; call when no periodic work is running. */
  close(): Promise<void>;
  /** Releases the state as if this process had died. */
  abandon(): Promise<void>;
}

/** The role at startup, without any state to release. */
export const STARTING: Role = {
  call: null,
  clockSet: () => undefined,
  seal: () => undefined,
  backupFacts: () => null,
  webhooks: () => [],
  partners: () => new Map(),
  endReaders: () => undefined,
  close: async () => undefined,
  abandon: async () => undefined,
};
