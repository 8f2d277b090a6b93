/**
 * Coordinates this instance with the others that serve the same state: which one is active, how the others reach it, and
 * what it knows about them.
 */
import type { Logger } from '../base/log/logger.ts';
import type { Runtime } from '../base/runtime.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import type { SharedKey } from '../edge/forward/target.ts';
import { type Call, onceConfirmed, UNAVAILABLE } from '../protocol/contract/calls.ts';
import type { DocumentPublisher } from '../protocol/contract/documents.ts';
import {
  createInstanceStatusMemory,
  type InstanceStatus,
  instanceStatusIn,
  noteActive,
  noteMove,
} from '../protocol/contract/instance-status.ts';
import type { DashboardInstance } from '../protocol/rows/dashboard.ts';
import { networkOf } from '../store/network-identity.ts';
import {
  type DatabaseSetting,
  type OpenedStore,
  type OwnLease,
  openOwnStore,
  openSharedStore,
  processName,
  type SharedStoreOptions,
  type Standby,
} from '../store/open.ts';
import {
  followDatabaseClock,
  type LeaseClock,
  leaseClock,
  pauseOn,
} from '../store/postgresql/clocks.ts';
import { keepInstanceRow, type SeenInstance } from '../store/postgresql/instances.ts';
import { agreedSettings } from './config/agreed-settings.ts';
import type { Config, LinkSetting } from './config/load.ts';
import { createVacancy, watchActive } from './forward/active-watch.ts';
import { createForwardKeys } from './forward/keys.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';
import { type GateThread, openGateThread } from './threads/gate-thread.ts';

export interface InstancesOptions extends Pick<SharedStoreOptions, 'instanceId' | 'lost'> {
  readonly config: Config;
  readonly signer: AuthoritySigner;
  readonly publisher: DocumentPublisher;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'instances'>;
  /** Its time is the system time. */
  readonly runtime: Runtime;
  /** The thread at which other instances arrive has failed. */
  gateFailed(cause: unknown): void;
}

export type Instances = Awaited<ReturnType<typeof joinOn>>;

/** Resolves when this instance may become active, or knows who is; rejects with a one-sentence error. */
export function joinInstances(options: InstancesOptions): Promise<Instances> {
  const { database } = options.config;
  return database === null ? standAlone(options) : joinOn(database, options);
}

/** The only instance on the state in its data folder. */
async function standAlone({ config }: InstancesOptions): Promise<Instances> {
  let own: Call = () => UNAVAILABLE;
  return {
    opening: openedAlone(openOwnStore(config.dataDir, networkOf(config.genesis))),
    instanceStatus: null,
    call: (name, given) => own(name, given),
    socketFolder: null,
    standbys: () => [],
    rows: () => null,
    follow: (listener) => listener(null),
    looked: () => undefined,
    beginTerm(call) {
      own = call;
    },
    leaseRemaining: () => 0,
    close: () => Promise.resolve(),
  };
}

async function joinOn(database: DatabaseSetting, options: InstancesOptions) {
  const { config, instanceId, logger, runtime } = options;
  const { leaseMs } = database;
  const clock = leaseClock(runtime);
  const instanceStatus = instanceStatusIn(createInstanceStatusMemory());
  const { memory } = instanceStatus;
  const keys = createForwardKeys(options.signer, config.genesis);
  const gate = config.link && (await openGate(config.link, keys.accepted(), options));
  const link = gate?.address ?? null;
  const vacancy = createVacancy({ memory, leaseMs, logger, elapsed: runtime.elapsed });
  const watch = watchActive({ memory, keys, gate, publisher: options.publisher });
  const noteMoving = moveNotes(instanceStatus, logger);
  const opening = await openOrWait(storeOptions(database, options), {
    configuration: agreedSettings(config),
    link,
    seen(term) {
      vacancy.reached();
      noteMoving(term?.isMoving === true);
      if (term !== null) watch.see(term);
    },
    missed: vacancy.missed,
    cannotWrite: (problem) => logger.write('ERROR', 'store', `${problem}: ${NOBODY}`),
  }).catch(async (cause) => {
    watch.close();
    await gate?.close();
    throw cause;
  });
  // The lease comes first: an instance whose start is refused is none of them.
  const place = { address: database.address(), leaseMs, link, clock, own: watch.ownRow };
  const row = keepInstanceRow({ ...place, id: instanceId, name: processName() });
  const standbys = () => (watch.isHere() ? row.others() : []);
  let call: Call = () => UNAVAILABLE;
  let leaseRemaining = () => 0;

  return {
    opening,
    /** Null if no other instance can become active. */
    instanceStatus: instanceStatus as InstanceStatus | null,
    /** The authority in this process; refuses everything while another instance is active. */
    call: ((name, given) => call(name, given)) as Call,
    /** Where edges take what other instances forward; null if they forward nothing. */
    socketFolder: gate?.folder ?? null,
    /** The other instances, while this one is active. */
    standbys,
    /** If this instance is active: it and the others; null if instances do not forward to each other. */
    rows: () => gate && instanceRows(instanceId, standbys()),
    /** Calls back with the active instance whenever that changes, and now. */
    follow: watch.follow,
    /** Notes how the state fares that this instance keeps ready. */
    looked: watch.looked,
    /** Makes this instance active; the lease is null if no other one can become active. */
    beginTerm(authority: Call, lease: OwnLease | null): void {
      if (lease === null) return;
      leaseRemaining = lease.remaining;
      call = callInTerm(authority, lease, clock, config.link?.holdMs ?? 0);
      vacancy.reached();
      noteActive(memory, lease.term);
      watch.turnHere();
      logger.write('INFO', 'store', `This instance is active, in term ${lease.term}`);
    },
    /** How many milliseconds this instance may stay active without renewing its lease; 0 while it is not active. */
    leaseRemaining: () => leaseRemaining(),
    async close(): Promise<void> {
      watch.close();
      await Promise.all([row.close(), gate?.close()]);
    },
  };
}

const NOBODY = 'no instance is active, and this one takes over as soon as the problem is solved';

function openGate(
  { host, port }: LinkSetting,
  keys: readonly SharedKey[],
  { config: { threads }, gateFailed }: InstancesOptions,
): Promise<GateThread> {
  return openGateThread({ host, port, threads, keys }, gateFailed);
}

function storeOptions(
  database: DatabaseSetting,
  { config, instanceId, runtime, logger, metrics, lost }: InstancesOptions,
): Parameters<typeof openOrWait>[0] {
  const { leaseConfirmed, databaseClock } = metrics.instances();
  return {
    dataDir: config.dataDir,
    database,
    network: networkOf(config.genesis),
    instanceId,
    runtime,
    confirmed: leaseConfirmed,
    clockCompared: followDatabaseClock(logger, databaseClock),
    delayed: (reason) => logger.write('WARNING', 'store', reason),
    lost,
  };
}

/** Call the returned function with whether a standby waits for a move. */
function moveNotes(status: InstanceStatus, logger: Logger): (isMoving: boolean) => void {
  return (isMoving) => {
    if (status.isMoving() === isMoving) return;
    noteMove(status.memory, isMoving);
    const text = isMoving
      ? 'A state is being moved into or out of the database; this instance waits until the move has ended'
      : 'The move has ended';
    logger.write('INFO', 'store', text);
  };
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

interface Opening {
  /** Null while another instance is active. */
  readonly opened: OpenedStore | null;
  /** Resolves when this instance may become active. */
  readonly opening: Promise<OpenedStore>;
  /** The name of the active instance. */
  readonly active: string;
  /** Stops waiting. */
  giveUp(): void;
}

/** Resolves when this instance may become active, or knows who is; rejects with a one-sentence error. */
async function openOrWait(
  options: Omit<SharedStoreOptions, 'standby'>,
  standby: Omit<Standby, 'waiting' | 'signal'>,
): Promise<Opening> {
  const ended = new AbortController();
  let waiting: (active: string) => void = () => undefined;
  const heldByOther = new Promise<string>((resolve) => {
    waiting = resolve;
  });
  const opening = openSharedStore({
    ...options,
    standby: { ...standby, waiting, signal: ended.signal },
  });
  const first = await Promise.race([opening, heldByOther]);
  const giveUp = () => ended.abort();
  return typeof first === 'string'
    ? { opened: null, opening, active: first, giveUp }
    : { opened: first, opening, active: THIS, giveUp };
}

const THIS = 'this instance';

/** A store that is this instance's alone. */
function openedAlone(opened: OpenedStore): Opening {
  return { opened, opening: Promise.resolve(opened), active: THIS, giveUp: () => undefined };
}

/** How often a request that waits for the renewal of the lease looks for it. */
const RENEWAL_MS = 50;

/**
 * The authority, as edges call it during a term of this instance [link-4]. `patience` is how many milliseconds a call may
 * wait for the renewal of the lease.
 */
function callInTerm(
  call: Call,
  { isHeld, heldSince }: OwnLease,
  clock: LeaseClock,
  patience: number,
): Call {
  const confirmed = onceConfirmed(call, heldSince, clock.elapsed);

  /** While the lease has run out, its renewal may be on its way. */
  async function untilHeld(): Promise<void> {
    const deadline = clock.elapsed() + patience;
    while (!isHeld() && clock.elapsed() < deadline) await pauseOn(clock, RENEWAL_MS);
  }

  return (name, given) =>
    isHeld() || name === 'checkReadiness'
      ? confirmed(name, given)
      : untilHeld().then(() => confirmed(name, given));
}
