/** An instance that waits for its turn: it keeps ready in memory what its database holds. */
import type { SeenList, SeenState } from '../authority/open.ts';
import { createAuthorityState } from '../authority/state.ts';
import { createSuccessor, type Successor } from '../authority/successor.ts';
import { problemText } from '../base/log/problem.ts';
import { type InstanceStatus, noteLag } from '../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../protocol/contract/publications.ts';
import { lastRevokedIn, newestSequence } from '../protocol/contract/revision-ends.ts';
import { networkOf } from '../store/network-identity.ts';
import { followDatabase } from '../store/open.ts';
import { leaseClock } from '../store/postgresql/lease-clock.ts';
import { type Role, STARTING } from './role.ts';
import { type StateContext, stateOptions } from './writer.ts';

export interface Waiting extends Role {
  /** What was kept ready, once, for the turn of this instance; null when the state has to be read. */
  readonly take: Successor['take'];
  /** What was seen of the state until now. */
  seen(): SeenState;
}

export function waitForTurn(context: StateContext, instanceStatus: InstanceStatus | null): Waiting {
  const successor = keepReady(context, instanceStatus);
  const seenList = followList(context.publisher);
  const end = async () => successor?.close();
  return {
    ...STARTING,
    take: async (previousOwner) => successor?.take(previousOwner) ?? null,
    seen: () => ({ position: successor?.newest() ?? null, list: seenList() }),
    close: end,
    abandon: end,
  };
}

/** The newest list that was ever shown, while others write. Call for the last time before one is withdrawn for this instance. */
function followList({ follow, revisionEnds }: DocumentPublisher): () => SeenList {
  let newest: SeenList = { sequence: 0, lastRevoked: null };
  let isOver = false;
  follow(({ name, document }) => {
    if (isOver || name !== 'crl') return;
    const sequence = newestSequence(revisionEnds);
    if (sequence >= newest.sequence) {
      newest = { sequence, lastRevoked: lastRevokedIn(document.bytes) };
    }
  });
  return () => {
    isOver = true;
    return newest;
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
