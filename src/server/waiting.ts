/** An instance that waits for its turn: it keeps a standby copy of the database's state in memory. */

import { formerKeys, genesisInForce, type KeyChain } from '../authority/authority-keys.ts';
import type { SeenList, SeenState } from '../authority/open.ts';
import { type AuthorityState, createAuthorityState } from '../authority/state.ts';
import { createSuccessor, type Successor } from '../authority/successor.ts';
import { problemText } from '../base/log/problem.ts';
import { type InstanceStatus, noteLag } from '../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../protocol/contract/publications.ts';
import { lastRevokedIn, newestSequence } from '../protocol/contract/revision-ends.ts';
import { networkOf } from '../store/network-identity.ts';
import { followDatabase } from '../store/open.ts';
import { leaseClock } from '../store/postgresql/lease-clock.ts';
import { settleIdentityFiles } from './identity-files.ts';
import { type Role, STARTING } from './role.ts';
import { type StateContext, stateOptions } from './writer.ts';

export interface Waiting extends Role {
  /** Hands over the standby state, once, when this instance's turn begins; null if the state must be read. */
  readonly take: Successor['take'];
  /** What this instance knows about the state so far. */
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

/**
 * Tracks the newest list published while others write. Make the last call before documents are withdrawn for this
 * instance.
 */
export function followList({ follow, revisionEnds }: DocumentPublisher): () => SeenList {
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

/** Null if no other instance can write. */
function keepReady(context: StateContext, instanceStatus: InstanceStatus | null): Successor | null {
  const { config, runtime, logger } = context;
  if (config.database === null || instanceStatus === null) return null;
  let standby: AuthorityState | null = null;
  const settleKeys = keysSettler(context);
  const successor = createSuccessor({
    follower: followDatabase(config.database, networkOf(config.genesis)),
    createState() {
      standby = createAuthorityState(stateOptions(context));
      return standby;
    },
    patience: config.database.leaseMs / 3,
    ...leaseClock(runtime),
    read: (revision) =>
      logger.write('INFO', 'store', `The standby state is ready, from revision ${revision} on`),
    failed: (cause) =>
      logger.write(
        'WARNING',
        'store',
        `The standby state cannot be kept up to date: ${problemText(cause)}; if this persists, this instance must read the whole state when its turn begins`,
      ),
    looked() {
      const lag = successor.lag();
      noteLag(instanceStatus.memory, lag);
      if (standby !== null && lag !== null) settleKeys(standby.held.authorityKeys.chain());
    },
  });
  return successor;
}

/** Each instance has files of its own for the genesis block and the keys, which follow what the writer decides. */
function keysSettler({ config, logger }: StateContext): (chain: KeyChain) => void {
  let settled: KeyChain | null = null;
  return (chain) => {
    if (chain === settled) return;
    settled = chain;
    const former = formerKeys(chain);
    if (former === null) return;
    const { identityFiles: files, genesis: configured } = config;
    const genesis = genesisInForce(chain, configured);
    void settleIdentityFiles(genesis, former, { files, configured, logger });
  };
}
