/**
 * Coordinates this instance with the others that serve the same state: which one is active, how the others reach it, and
 * what it knows about them.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '../base/log/logger.ts';
import type { Runtime } from '../base/runtime.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import type { Instance } from '../edge/edge-config.ts';
import type { Active } from '../edge/forward/target.ts';
import { type Call, onceConfirmed, UNAVAILABLE } from '../protocol/contract/calls.ts';
import {
  createInstanceStatusMemory,
  instanceStatusIn,
  noteActive,
  noteLag,
  noteMove,
  noteTerm,
} from '../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../protocol/contract/publications.ts';
import type { AuthorityKey } from '../protocol/records/authority-chain.ts';
import type { DashboardInstance } from '../protocol/rows/dashboard.ts';
import { networkOf } from '../store/network-identity.ts';
import {
  type OpenedStore,
  type OwnLease,
  openStore,
  processName,
  type Standby,
  type StoreOptions,
} from '../store/open.ts';
import { clockSentence, MOST_CLOCK_DIFFERENCE_MS } from '../store/postgresql/clock-difference.ts';
import { keepInstanceRow, type OwnRow, type SeenInstance } from '../store/postgresql/instances.ts';
import type { SeenTerm } from '../store/postgresql/lease.ts';
import { leaseClock, pauseOn } from '../store/postgresql/lease-clock.ts';
import { agreedSettings } from './config/agreed-settings.ts';
import type { Config } from './config/load.ts';
import { keysIn } from './derived-secret.ts';
import { createForwardKeys } from './forward/keys.ts';
import { createVacancy } from './forward/vacancy.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import { openGateThread } from './threads/gate-thread.ts';

export interface InstancesOptions extends Pick<StoreOptions, 'instanceId' | 'lost'> {
  readonly config: Config;
  readonly signer: AuthoritySigner;
  readonly publisher: DocumentPublisher;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'leaseConfirmed' | 'databaseClock'>;
  /** Its time is the system time. */
  readonly runtime: Runtime;
  /** The thread at which other instances arrive has failed. */
  gateFailed(cause: unknown): void;
}

/** The state that an instance keeps ready. */
export interface StandbyState {
  /** Null while there is none. */
  readonly revision: number | null;
  /** How many revisions it is behind; null while there is none. */
  readonly lag: number | null;
  /** The keys of the authority in it. */
  readonly keys: readonly AuthorityKey[];
}

interface Turn {
  /** Null while another instance is active. */
  readonly opened: OpenedStore | null;
  /** Resolves when this instance may become active. */
  readonly opening: Promise<OpenedStore>;
  /** The name of the active instance. */
  readonly holder: string;
  /** Stops waiting. */
  giveUp(): void;
}

/** How often the keys of the authority are looked for. */
const KEYS_MS = 1000;

/** Resolves when this instance may become active, or knows who is; rejects with a one-sentence error. */
export async function joinInstances(options: InstancesOptions) {
  const { config, instanceId, publisher, logger, metrics, runtime } = options;
  const { elapsed } = runtime;
  const clock = leaseClock(runtime);
  const instanceStatus =
    config.database === null ? null : instanceStatusIn(createInstanceStatusMemory());
  const listeners: ((active: Active) => void)[] = [];
  let active: Active = null;
  let holder: SeenTerm | null = null;
  let led: Call | null = null;
  let leaseRemaining = () => 0;
  let standbyState: StandbyState = { revision: null, lag: null, keys: [] };
  /** The smallest since the row was last written: what was stored a moment ago is no lag. */
  let leastLag: number | null = null;

  const keys = instanceStatus && createForwardKeys(options.signer, config.genesis);
  const gate = config.link && keys && (await openGate(config.link, keys.accepted()));
  const vacancy =
    instanceStatus &&
    createVacancy({
      memory: instanceStatus.memory,
      leaseMs: config.database?.leaseMs ?? 0,
      logger,
      elapsed,
    });

  async function openGate({ host, port }: { host: string; port: number }, accepted: SharedKeys) {
    const folder = await mkdtemp(join(tmpdir(), 'mesh-na-'));
    const slots =
      config.threads === 1 ? [0] : Array.from({ length: config.threads }, (_, i) => i + 1);
    const sockets = slots.map((slot) => join(folder, String(slot)));
    const given = { host, port, sockets, keys: accepted };
    try {
      return { folder, ...(await openGateThread(given, options.gateFailed)) };
    } catch (cause) {
      await rm(folder, { recursive: true });
      throw cause;
    }
  }

  /** Calls back with who is active. */
  function note(next: Active): void {
    active = next;
    for (const listener of listeners) listener(active);
  }

  /** Other keys may be held than a second ago, and others may sign. */
  function refresh(): void {
    if (keys === null) return;
    gate?.accept(keys.accepted());
    if (active === 'this instance' || holder === null || gate === null) return;
    const { term, link } = holder;
    note(link === null ? null : { term, address: link, keys: keys.offered() });
  }

  publisher.follow(({ name, document }) => {
    if (name !== 'authority_keys') return;
    keys?.know(keysIn(document));
    // Another key signs once this publication is complete, and one that was stolen no longer proves anything.
    setImmediate(refresh);
  });

  /** Called when a move begins or ends, while this instance waits for it. */
  function noteMoving(isMoving: boolean): void {
    if (instanceStatus === null || instanceStatus.isMoving() === isMoving) return;
    noteMove(instanceStatus.memory, isMoving);
    const text = isMoving
      ? 'A state is being moved into or out of the database; this instance waits until the move has ended'
      : 'The move has ended';
    logger.write('INFO', 'store', text);
  }

  function noteHolder(seen: SeenTerm | null): void {
    vacancy?.reached();
    noteMoving(seen?.isMoving === true);
    if (seen === null || instanceStatus === null) return;
    const isOther = seen.term !== holder?.term || seen.link !== holder.link;
    holder = seen;
    if (gate !== null) noteTerm(instanceStatus.memory, seen.term);
    if (isOther) refresh();
  }

  function ownRow(): OwnRow {
    const { revision, lag } = standbyState;
    const behind = lag === null ? null : Math.min(lag, leastLag ?? lag);
    leastLag = null;
    const isActive = active === 'this instance';
    return { isActive, revision, lag: isActive ? 0 : behind, nextKey: keys?.nextKey() ?? null };
  }

  const refreshing = setInterval(refresh, KEYS_MS).unref();
  let row: ReturnType<typeof keepInstanceRow> | null = null;

  async function close(): Promise<void> {
    clearInterval(refreshing);
    await Promise.all([row?.close(), gate?.close()]);
    if (gate !== null) await rm(gate.folder, { recursive: true, force: true });
  }

  function standbys(): readonly SeenInstance[] {
    return active === 'this instance' ? (row?.others() ?? []) : [];
  }

  const turn = await takeTurn(config, {
    instanceId,
    runtime,
    link: gate?.address ?? null,
    seen: noteHolder,
    missed: () => vacancy?.missed(),
    cannotWrite: (problem) =>
      logger.write(
        'ERROR',
        'store',
        `${problem}: no instance is active, and this one takes over as soon as the problem is solved`,
      ),
    confirmed: metrics.leaseConfirmed,
    clockCompared: followDatabaseClock(logger, metrics.databaseClock),
    delayed: (reason) => logger.write('WARNING', 'store', reason),
    lost: options.lost,
  }).catch(async (cause) => {
    await close();
    throw cause;
  });

  // The lease comes first: an instance whose start is refused is none of them.
  row =
    config.database &&
    keepInstanceRow({
      address: config.database.address(),
      leaseMs: config.database.leaseMs,
      clock,
      id: instanceId,
      name: processName(),
      link: gate?.address ?? null,
      own: ownRow,
    });

  const call: Call = (name, given) => led?.(name, given) ?? UNAVAILABLE;

  return {
    /** Null if no other instance can become active. */
    instanceStatus,
    turn,
    /** The authority in this process; refuses everything while another instance is active. */
    call,
    /** Where edges take what other instances forward; null if they forward nothing. */
    socketFolder: gate?.folder ?? null,
    /** The other instances, while this one is active. */
    standbys,
    /** If this instance is active: it and the others; null if instances do not forward to each other. */
    rows: (): readonly DashboardInstance[] | null => gate && instanceRows(instanceId, standbys()),
    /** Calls back with the active instance whenever that changes, and now. */
    follow(listener: (active: Active) => void): void {
      listeners.push(listener);
      listener(active);
    },
    /** Notes how the state fares that this instance keeps ready. */
    looked(state: StandbyState): void {
      if (instanceStatus === null || active === 'this instance') return;
      standbyState = state;
      noteLag(instanceStatus.memory, state.lag);
      leastLag = state.lag === null ? null : Math.min(state.lag, leastLag ?? state.lag);
      keys?.know(state.keys);
    },
    /** Makes this instance active. */
    lead(own: Call, { term, heldSince, isHeld, remaining }: OwnLease): void {
      if (instanceStatus === null) return;
      leaseRemaining = remaining;
      const confirmed = onceConfirmed(own, heldSince, elapsed);
      const patience = config.link?.holdMs ?? 0;
      led = (name, given) =>
        isHeld() || name === 'checkReadiness'
          ? confirmed(name, given)
          : untilHeld(isHeld, patience).then(() => confirmed(name, given));
      vacancy?.reached();
      noteActive(instanceStatus.memory, term);
      note('this instance');
      logger.write('INFO', 'store', `This instance is active, in term ${term}`);
    },
    /** How many milliseconds this instance may stay active without renewing its lease; 0 while it is not active. */
    leaseRemaining: (): number => leaseRemaining(),
    close,
  };

  /** While the lease has run out, its renewal may be on its way. */
  async function untilHeld(isHeld: () => boolean, patience: number): Promise<void> {
    const deadline = elapsed() + patience;
    while (!isHeld() && elapsed() < deadline) await pauseOn(clock, RENEWAL_MS);
  }
}

/** How often a request that waits for the renewal of the lease looks for it. */
const RENEWAL_MS = 50;

type SharedKeys = Parameters<typeof openGateThread>[0]['keys'];

export function haModeOf({ database, link }: Config): Instance['haMode'] {
  if (database === null) return 'single';
  return link === null ? 'standby' : 'linked';
}

type TurnOptions = Pick<Standby, 'link' | 'seen' | 'missed' | 'cannotWrite'> &
  Pick<StoreOptions, 'instanceId' | 'runtime' | 'confirmed' | 'clockCompared' | 'delayed' | 'lost'>;

/** Opens the store, or finds out that another instance is active. */
async function takeTurn(
  config: Config,
  { link, seen, missed, cannotWrite, ...options }: TurnOptions,
): Promise<Turn> {
  const ended = new AbortController();
  let waiting: (holder: string) => void = () => undefined;
  const heldByOther = new Promise<string>((resolve) => {
    waiting = resolve;
  });
  const opening = openStore({
    ...options,
    dataDir: config.dataDir,
    database: config.database,
    network: networkOf(config.genesis),
    standby: {
      configuration: agreedSettings(config),
      link,
      waiting,
      seen,
      missed,
      cannotWrite,
      signal: ended.signal,
    },
  });
  const first = await Promise.race([opening, heldByOther]);
  const giveUp = () => ended.abort();
  return typeof first === 'string'
    ? { opened: null, opening, holder: first, giveUp }
    : { opened: first, opening, holder: 'this instance', giveUp };
}

/** The active instance first, then the others by id. */
function instanceRows(active: string, standbys: readonly SeenInstance[]): DashboardInstance[] {
  return [
    { instance: active, role: 'active', lag_revisions: 0 },
    ...standbys.map(
      ({ id, lag }): DashboardInstance => ({ instance: id, role: 'standby', lag_revisions: lag }),
    ),
  ];
}

/**
 * Hysteresis: after the clocks differed too much, they count as in agreement again only below this, so that small
 * changes do not each log a line.
 */
const AGREE_AGAIN_MS = MOST_CLOCK_DIFFERENCE_MS / 2;

/** Call the returned function with each measurement: by how many milliseconds the machine is ahead. */
export function followDatabaseClock(
  logger: Logger,
  measured: (aheadMs: number) => void,
): (aheadMs: number) => void {
  let differs = false;
  return (aheadMs) => {
    measured(aheadMs);
    const difference = Math.abs(aheadMs);
    if (!differs && difference > MOST_CLOCK_DIFFERENCE_MS) {
      differs = true;
      logger.write('WARNING', 'clock', clockSentence(aheadMs));
    } else if (differs && difference <= AGREE_AGAIN_MS) {
      differs = false;
      logger.write(
        'INFO',
        'clock',
        'The clock of this machine agrees with that of the database again',
      );
    }
  };
}
