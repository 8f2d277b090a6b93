/**
 * What an instance does with the state: it waits for its turn and keeps ready what its database holds, or it writes. The
 * writer is in `writer.ts`.
 */
import type { HostStatus } from '../authority/derived/host-status.ts';
import type { OpenAuthority, SeenState } from '../authority/open.ts';
import { createAuthorityState } from '../authority/state.ts';
import { createSuccessor, type Successor } from '../authority/successor.ts';
import { problemText } from '../base/log/problem.ts';
import type { Call } from '../protocol/contract/calls.ts';
import { type InstanceStatus, noteLag } from '../protocol/contract/instance-status.ts';
import { networkOf } from '../store/network-identity.ts';
import { followDatabase } from '../store/open.ts';
import { leaseClock } from '../store/postgresql/lease-clock.ts';
import type { Job } from './lifecycle/background.ts';
import { type StateContext, stateOptions } from './writer.ts';

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

export interface Waiting extends Role {
  /** What was kept ready, once, for the turn of this instance; null when the state has to be read. */
  readonly take: Successor['take'];
  /** The newest position that was seen of the state. */
  newest(): SeenState['position'];
}

export function waitForTurn(context: StateContext, instanceStatus: InstanceStatus | null): Waiting {
  const successor = keepReady(context, instanceStatus);
  const end = async () => successor?.close();
  return {
    ...STARTING,
    take: async (previousOwner) => successor?.take(previousOwner) ?? null,
    newest: () => successor?.newest() ?? null,
    close: end,
    abandon: end,
  };
}

/** Null where no other instance can write. */
function keepReady(context: StateContext, instanceStatus: InstanceStatus | null): Successor | null {
  const { config, runtime, logger } = context;
  if (config.database === null || instanceStatus === null) return null;
  const successor = createSuccessor({
    follower: followDatabase(config.database, networkOf(config.genesis)),
    createState: () => createAuthorityState(stateOptions(context)),
    patience: config.database.leaseMs / 3,
    ...leaseClock(runtime),
    read: (revision) =>
      logger.write('INFO', 'store', `The state is kept ready, from revision ${revision} on`),
    failed: (cause) =>
      logger.write(
        'WARNING',
        'store',
        `The state cannot be kept ready: ${problemText(cause)}; if it stays so, a turn of this instance begins with reading it`,
      ),
    looked: () => noteLag(instanceStatus.memory, successor.lag()),
  });
  return successor;
}
