/**
 * This instance among those that serve the same state: whose turn it is to write, and the link between the one that
 * does and the others.
 */

import { sha256Hex } from '../base/crypto/digest.ts';
import { canonicalJson, compareCodePoints } from '../base/json/write.ts';
import type { Logger } from '../base/log/logger.ts';
import type { Runtime } from '../base/runtime.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import type { Instance } from '../edge/instance.ts';
import type { LocalRateLimits } from '../edge/rate-limit.ts';
import { type Call, onceConfirmed } from '../protocol/contract/calls.ts';
import {
  createStandingMemory,
  type InstanceStatus,
  type LinkedFollower,
  noteMove,
  noteWriter,
  standingIn,
} from '../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../protocol/contract/publications.ts';
import type { DashboardInstance } from '../protocol/rows/dashboard.ts';
import { networkOf } from '../store/network-identity.ts';
import {
  type Candidate,
  type OpenedStore,
  openStore,
  processName,
  type StoreOptions,
  type Tenure,
} from '../store/open.ts';
import { clockSentence, MOST_CLOCK_DIFFERENCE_MS } from '../store/postgresql/clock-difference.ts';
import { agreedSettings } from './config/agreed-settings.ts';
import type { Config } from './config/load.ts';
import { type CallRouter, createCallRouter } from './link/call-router.ts';
import { createLinkClient } from './link/client.ts';
import { openLinkHost } from './link/host.ts';
import { createLastCopies } from './link/last-copies.ts';
import { linkKey, tlsWires } from './link/tls-wires.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';

export interface InstancesOptions {
  readonly config: Config;
  /** Of this start of the service. */
  readonly instanceId: string;
  /** Only instances of the same program talk to each other. */
  readonly program: string;
  readonly signer: AuthoritySigner;
  readonly publisher: DocumentPublisher;
  /** The counts of this instance, which are everybody's while it writes. */
  readonly limits: LocalRateLimits;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'linkAnswered' | 'leaseConfirmed' | 'databaseClock'>;
  /** Its time is that of the system. */
  readonly runtime: Runtime;
  /** Milliseconds since the epoch, by the clock that the service goes by. */
  now(): number;
  /** Resolves when no edge can still be reading a document that was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
  /** Called once, when the state is to be moved elsewhere, and this process to stop. */
  stopRequested(): void;
  /** Called once, when another process may write. */
  lost(problem: string): void;
}

export interface Instances {
  /** Null where no other instance can write. */
  readonly instanceStatus: InstanceStatus | null;
  readonly turn: Turn;
  /** Where edges bring their calls, if another instance can write. */
  readonly callRouter: CallRouter;
  /** Those that are linked to this instance. */
  followers(): readonly LinkedFollower[];
  /** Those that answer together, if this one writes; null where none is linked to others. */
  rows(): readonly DashboardInstance[] | null;
  /** From now on the answers of this instance are those of the writer. */
  lead(call: Call, tenure: Tenure): void;
  /** Ends the link to the instance that has written. */
  unfollow(): void;
  /** Followers send no further request; resolves when those that they have sent are answered. */
  halt(): Promise<void>;
  /** Milliseconds for which this instance may write without a renewal of its lease; 0 while it does not write. */
  leaseRemaining(): number;
  close(): void;
}

interface Turn {
  /** Null while another instance writes. */
  readonly opened: OpenedStore | null;
  /** Resolves when this instance is the one that writes. */
  readonly opening: Promise<OpenedStore>;
  /** What the instance that writes calls itself. */
  readonly holder: string;
  /** Waits no longer. */
  giveUp(): void;
}

/** Resolves when this instance writes, or knows who does; rejects with one sentence. */
export async function joinInstances(options: InstancesOptions): Promise<Instances> {
  const { config, publisher, limits, logger, metrics, runtime } = options;
  const { elapsed } = runtime;
  const instanceStatus = config.database === null ? null : standingIn(createStandingMemory());
  let leaseRemaining = () => 0;

  const link = config.link && linkSecrets(options);
  const host =
    config.link &&
    link &&
    (await openLinkHost({
      ...link,
      address: config.link,
      publisher,
      logger,
      elapsed,
    }));
  const client =
    link &&
    instanceStatus &&
    createLinkClient({
      ...link,
      publisher,
      instanceStatus,
      logger,
      elapsed,
      linked() {
        lastCopies?.reached();
        callRouter.resume();
      },
      edgesCaughtUp: options.edgesCaughtUp,
      answered: metrics.linkAnswered,
    });
  const lastCopies =
    client &&
    instanceStatus &&
    createLastCopies({
      client,
      memory: instanceStatus.memory,
      leaseMs: config.database?.leaseMs ?? 0,
      logger,
      elapsed,
      now: options.now,
    });
  const holdMs = config.link?.holdMs ?? 0;
  const callRouter = createCallRouter({ client, holdMs, rateLimits: config.rateLimits, elapsed });

  /** Whether this instance waits for the end of a move. */
  function noteMoving(isMoving: boolean): void {
    if (instanceStatus === null || instanceStatus.isMoving() === isMoving) return;
    noteMove(instanceStatus.memory, isMoving);
    const text = isMoving
      ? 'A state is being moved into the database, or out of it: this instance waits until that has ended'
      : 'No state is being moved any more';
    logger.write('INFO', 'store', text);
  }

  function close(): void {
    client?.close();
    host?.close();
  }

  const turn = await takeTurn(config, {
    instanceId: options.instanceId,
    runtime,
    link: host?.address ?? null,
    seen(holder) {
      lastCopies?.reached();
      noteMoving(holder?.isMoving === true);
      if (holder !== null && holder.link !== null) client?.follow({ ...holder, link: holder.link });
    },
    missed: () => lastCopies?.missed(),
    cannotWrite: (problem) =>
      logger.write(
        'ERROR',
        'store',
        `${problem}: nobody writes, and this instance takes over as soon as it does`,
      ),
    confirmed: metrics.leaseConfirmed,
    clockCompared: followDatabaseClock(logger, metrics.databaseClock),
    stopRequested: options.stopRequested,
    lost: options.lost,
  }).catch((cause) => {
    close();
    throw cause;
  });

  return {
    instanceStatus,
    turn,
    callRouter,
    followers: () => host?.followers() ?? [],
    rows: () => host && instanceRows(options.instanceId, host.followers()),
    lead(call, { epoch, heldSince, remaining }) {
      if (instanceStatus === null) return;
      noteWriter(instanceStatus.memory, epoch);
      leaseRemaining = remaining;
      const confirmed = onceConfirmed(call, heldSince, elapsed);
      host?.startServing({ epoch, call: confirmed, limits, heldSince });
      callRouter.lead(confirmed, limits);
      logger.write('INFO', 'store', `This instance writes, as holder ${epoch} of the lease`);
    },
    unfollow: () => client?.close(),
    halt: () => host?.halt() ?? Promise.resolve(),
    leaseRemaining: () => leaseRemaining(),
    close,
  };
}

export function haModeOf({ database, link }: Config): Instance['haMode'] {
  if (database === null) return 'single';
  return link === null ? 'standby' : 'linked';
}

/** What two instances need of each other to talk. */
function linkSecrets({ config, instanceId, signer, program, logger }: InstancesOptions) {
  const key = linkKey(signer, sha256Hex(canonicalJson(config.genesis)));
  const wires = tlsWires({ key, warn: (problem) => logger.write('WARNING', 'link', problem) });
  return { wires, program, name: processName(), instance: instanceId };
}

type TurnOptions = Pick<Candidate, 'link' | 'seen' | 'missed' | 'cannotWrite'> &
  Pick<
    StoreOptions,
    'instanceId' | 'runtime' | 'confirmed' | 'clockCompared' | 'stopRequested' | 'lost'
  >;

/** Opens the store, or learns that another instance writes to it. */
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
    candidate: {
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

/** The writer first, then the others by id. */
function instanceRows(writer: string, followers: readonly LinkedFollower[]): DashboardInstance[] {
  const others = followers.toSorted((a, b) => compareCodePoints(a.instance, b.instance));
  return [
    { instance: writer, role: 'writer', lag_revisions: 0 },
    ...others.map(
      ({ instance, lag }): DashboardInstance => ({
        instance,
        role: 'follower',
        lag_revisions: lag,
      }),
    ),
  ];
}

/** Once they were too far apart, they agree again below this: no line for each of many small changes. */
const AGREE_AGAIN_MS = MOST_CLOCK_DIFFERENCE_MS / 2;

/** The returned function takes each comparison, in milliseconds by which the machine is ahead. */
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
