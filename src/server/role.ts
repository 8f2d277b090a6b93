/** What an instance does with the state: it waits for its turn (`waiting.ts`), or it writes (`writer.ts`). */
import type { HostStatus } from '../authority/derived/host-status.ts';
import type { OpenAuthority } from '../authority/open.ts';
import type { Call } from '../protocol/contract/calls.ts';
import type { Job } from './lifecycle/background.ts';

export interface Role {
  /** The authority; null where another instance is. */
  readonly call: Call | null;
  readonly clockSet: OpenAuthority['clockSet'];
  readonly seal: OpenAuthority['seal'];
  /** Throws before they have begun, and where another instance writes. */
  jobs(): WriterJobs;
  /** Null without a schedule of backups. */
  backupFacts(): HostStatus['backup'];
  /** Damage that is known of the stored state. */
  damaged(): number;
  webhooks(): HostStatus['webhooks'];
  /** Ends the processes that read the state, and starts no other. */
  endReaders(): void;
  /** Flushes for the last time and gives the state up; call when no periodic work is under way. */
  close(): Promise<void>;
  /** Gives the state up as if this process had died. */
  abandon(): Promise<void>;
}

/** The periodic work of the writer. */
export interface WriterJobs {
  readonly flush: Job;
  readonly sweep: Job;
  readonly renewLists: Job;
  runTrustCycle(): Promise<void>;
  /** Null without a schedule. */
  readonly backUp: Job | null;
  /** Null where the state is not looked through for damage. */
  readonly scrub: Job | null;
}

/** An instance before its turn, which has no state to give up. */
export const STARTING: Role = {
  call: null,
  clockSet: () => undefined,
  seal: () => undefined,
  jobs() {
    throw new Error('This instance does not write');
  },
  backupFacts: () => null,
  damaged: () => 0,
  webhooks: () => [],
  endReaders: () => undefined,
  close: async () => undefined,
  abandon: async () => undefined,
};
