/** What an instance that waits for its turn runs: the state in its database, kept ready in memory. */
import { createAuthorityState } from '../authority/state.ts';
import { createSuccessor, type Successor } from '../authority/successor.ts';
import { problemText } from '../base/log/problem.ts';
import { type InstanceStatus, noteLag } from '../protocol/contract/instance-status.ts';
import { networkOf } from '../store/network-identity.ts';
import { followDatabase } from '../store/open.ts';
import { leaseClock } from '../store/postgresql/lease-clock.ts';
import { type StateContext, stateOptions } from './writer.ts';

/** Null where no other instance can write. */
export function keepReady(
  context: StateContext,
  instanceStatus: InstanceStatus | null,
): Successor | null {
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
