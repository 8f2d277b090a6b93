/**
 * A standby keeps the state of the database ready in memory. And how an instance becomes active: at its start, or after
 * it was a standby.
 */
import { formerKeys, genesisInForce, type KeyChain } from '../authority/authority-keys.ts';
import type { ReadyState, SeenList, SeenState } from '../authority/open.ts';
import { createStandby, type Standby } from '../authority/standby.ts';
import { type AuthorityState, createAuthorityState } from '../authority/state.ts';
import { problemText } from '../base/error-message.ts';
import {
  lastRevokedIn,
  type PublishedDocument,
  sequenceIn,
} from '../protocol/contract/documents.ts';
import { networkOf } from '../store/network-identity.ts';
import { type OpenedStore, standbyReader } from '../store/open.ts';
import { leaseClock } from '../store/postgresql/clocks.ts';
import { type ActiveRole, openActive, type StateContext, stateOptions } from './active.ts';
import { type Role, STARTING } from './base.ts';
import type { StandbyState } from './forward/active-watch.ts';
import type { Front } from './front.ts';
import { settleIdentityFiles } from './identity-files.ts';
import type { Prepared } from './prepare.ts';

export interface StandbyRole extends Role {
  /** Hands over the standby state, once, when this instance becomes active; null if the state must be read. */
  readonly take: Standby['take'];
  /** What this instance knows about the state so far. */
  seen(): SeenState;
}

/** `lastList` is the revocation list that this instance has passed on last; undefined if it has passed on none. */
function standBy(
  context: StateContext,
  looked: (state: StandbyState) => void,
  lastList: () => PublishedDocument | undefined,
): StandbyRole {
  const standby = keepReady(context, looked);
  const close = async () => standby?.close();
  return {
    ...STARTING,
    take: async (previousOwner) => standby?.take(previousOwner) ?? null,
    seen: () => ({ position: standby?.newest() ?? null, list: seenList(lastList()) }),
    close,
    abandon: close,
  };
}

/** What is known of a revocation list that was passed on. */
export function seenList(list: PublishedDocument | undefined): SeenList {
  if (list === undefined) return { sequence: 0, lastRevoked: null };
  return { sequence: sequenceIn(list.bytes), lastRevoked: lastRevokedIn(list.bytes) };
}

/** Null if no other instance can become active. */
function keepReady(context: StateContext, looked: (state: StandbyState) => void): Standby | null {
  const { config, runtime, logger } = context;
  if (config.database === null) return null;
  let state: AuthorityState | null = null;
  const settleKeys = keysSettler(context);
  const standby = createStandby({
    reader: standbyReader(config.database, networkOf(config.genesis)),
    createState() {
      state = createAuthorityState(stateOptions(context));
      return state;
    },
    patience: config.database.leaseMs / 3,
    ...leaseClock(runtime),
    read: (revision) =>
      logger.write('INFO', 'store', `The standby state is ready, from revision ${revision} on`),
    failed: (cause) =>
      logger.write(
        'WARNING',
        'store',
        `The standby state cannot be kept up to date: ${problemText(cause)}; if this persists, this instance must read the whole state before it becomes active`,
      ),
    looked() {
      const lag = standby.lag();
      const chain = lag === null ? null : (state?.held.authorityKeys.chain() ?? null);
      looked({ revision: standby.newest()?.revision ?? null, lag, keys: chain?.keys ?? [] });
      if (chain !== null) settleKeys(chain);
    },
  });
  return standby;
}

/** Each instance has files of its own for the genesis block and the keys, which follow what the active instance decides. */
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

export type Terms = ReturnType<typeof createTerms>;

/** `front` resolves once there are edges; none can call the authority before that. */
export function createTerms(prepared: Prepared, front: Promise<Front>) {
  const { options, logger, metrics, lifecycle, background, instances, place } = prepared;
  const { opening } = instances;
  const context: StateContext = {
    ...prepared,
    listThreadFrom: options.listThreadFrom,
    edgesCaughtUp: async () => (await front).barrier(),
  };
  /** The revocation list that was passed on last. */
  let lastList: PublishedDocument | undefined;

  async function open(opened: OpenedStore, ready: ReadyState | null, seen: SeenState | null) {
    const hostStatus = () => prepared.hostStatus;
    const active = await openActive({ ...context, opened, ready, seen, metrics, hostStatus });
    place.role = active;
    return active;
  }

  return {
    /** Resolves with the authority if this instance is active at once; with null if another one is. */
    async first(): Promise<ActiveRole | null> {
      const { opened } = opening;
      if (opened === null) return null;
      const active = await open(opened, null, null);
      instances.beginTerm(active.call, opened.lease);
      return active;
    },
    /** Keeps the state ready until this instance may become active, and makes it active. */
    async standByAndTake(): Promise<void> {
      logger.write('INFO', 'store', `${opening.active} is active; this instance is a standby`);
      const standby = standBy(context, instances.looked, () => lastList);
      place.role = standby;
      const opened = await opening.opening;
      if (lifecycle.state !== 'serving') return opened.store.abandon();
      const ready = opened.lease && (await standby.take(opened.lease.previousOwner));
      const active = await open(opened, ready, standby.seen());
      if (lifecycle.state !== 'serving') return;
      instances.beginTerm(active.call, opened.lease);
      await active.begin(background);
    },
    /** Notes a revocation list that the active instance has answered with. */
    passedOn(list: PublishedDocument): void {
      lastList = list;
    },
  };
}
