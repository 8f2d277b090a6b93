/**
 * Coordinates this instance with the others that serve the same state: who writes, and the link between the writer and
 * its followers.
 */

import { compareCodePoints } from '../base/json/write.ts';
import type { Logger } from '../base/log/logger.ts';
import type { Runtime } from '../base/runtime.ts';
import type { AuthoritySigner } from '../base/signer/authority-signer.ts';
import type { Instance } from '../edge/edge-config.ts';
import type { LocalRateLimits } from '../edge/limits/rate-limit.ts';
import type { RequestQueue } from '../edge/limits/request-queue.ts';
import { type Call, onceConfirmed } from '../protocol/contract/calls.ts';
import {
  createInstanceStatusMemory,
  type InstanceStatus,
  instanceStatusIn,
  type LinkedFollower,
  noteMove,
  noteWriter,
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
import { createLinkKeys } from './link/keys.ts';
import { createLastCopies } from './link/last-copies.ts';
import { tlsWires } from './link/tls-wires.ts';
import type { AuthorityMetrics } from './metrics/authority.ts';

export interface InstancesOptions extends Pick<StoreOptions, 'instanceId' | 'lost'> {
  readonly config: Config;
  /** The program version; only instances with the same one link to each other. */
  readonly program: string;
  readonly signer: AuthoritySigner;
  readonly publisher: DocumentPublisher;
  /** The queue of this thread. */
  readonly queue: RequestQueue;
  /** The rate limit counts of this instance, which apply to all instances while it is the writer. */
  readonly limits: LocalRateLimits;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'linkAnswered' | 'leaseConfirmed' | 'databaseClock'>;
  /** Its time is the system time. */
  readonly runtime: Runtime;
  /** Milliseconds since the epoch, by the service's clock. */
  now(): number;
  /** Resolves once no edge can still be reading a document that was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
}

export interface Instances {
  /** Null if no other instance can write. */
  readonly instanceStatus: InstanceStatus | null;
  readonly turn: Turn;
  /** Routes the calls of edges if another instance can write. */
  readonly callRouter: CallRouter;
  /** The followers linked to this instance. */
  followers(): readonly LinkedFollower[];
  /** If this instance is the writer: it and its followers; null if instances are not linked. */
  rows(): readonly DashboardInstance[] | null;
  /** Makes this instance answer as the writer from now on. */
  lead(call: Call, tenure: Tenure): void;
  /** Ends the link to the previous writer. */
  unfollow(): void;
  /** Stops followers from sending requests; resolves when those already sent are answered. */
  halt(): Promise<void>;
  /** How many milliseconds this instance may keep writing without renewing its lease; 0 while it is not the writer. */
  leaseRemaining(): number;
  close(): void;
}

interface Turn {
  /** Null while another instance is the writer. */
  readonly opened: OpenedStore | null;
  /** Resolves when this instance becomes the writer. */
  readonly opening: Promise<OpenedStore>;
  /** The name of the writer. */
  readonly holder: string;
  /** Stops waiting. */
  giveUp(): void;
}

/** Resolves when this instance is the writer, or knows who is; rejects with a one-sentence error. */
export async function joinInstances(options: InstancesOptions): Promise<Instances> {
  const { config, publisher, limits, logger, metrics, runtime } = options;
  const { elapsed } = runtime;
  const instanceStatus =
    config.database === null ? null : instanceStatusIn(createInstanceStatusMemory());
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

  /** Called when a move begins or ends, while this instance waits for it. */
  function noteMoving(isMoving: boolean): void {
    if (instanceStatus === null || instanceStatus.isMoving() === isMoving) return;
    noteMove(instanceStatus.memory, isMoving);
    const text = isMoving
      ? 'A state is being moved into or out of the database; this instance waits until the move has ended'
      : 'The move has ended';
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
        `${problem}: there is no writer, and this instance takes over as soon as the problem is solved`,
      ),
    confirmed: metrics.leaseConfirmed,
    clockCompared: followDatabaseClock(logger, metrics.databaseClock),
    delayed: (reason) => logger.write('WARNING', 'store', reason),
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
    lead(call, { epoch, heldSince, isHeld, remaining }) {
      if (instanceStatus === null) return;
      noteWriter(instanceStatus.memory, epoch);
      leaseRemaining = remaining;
      const confirmed = onceConfirmed(call, heldSince, elapsed);
      host?.startServing({ epoch, call: confirmed, queue: options.queue, limits, heldSince });
      callRouter.lead({ call: confirmed, limits, isHeld });
      logger.write('INFO', 'store', `This instance is the writer, as holder ${epoch} of the lease`);
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

/** The secrets that two instances share to authenticate their link. */
function linkSecrets({
  config,
  instanceId,
  signer,
  program,
  publisher,
  logger,
  runtime: { elapsed },
}: InstancesOptions) {
  const keys = createLinkKeys({ signer, genesis: config.genesis, publisher, elapsed });
  const wires = tlsWires({ keys, warn: (problem) => logger.write('WARNING', 'link', problem) });
  const { nextKey } = keys;
  return { wires, program, nextKey, name: processName(), instance: instanceId };
}

type TurnOptions = Pick<Candidate, 'link' | 'seen' | 'missed' | 'cannotWrite'> &
  Pick<StoreOptions, 'instanceId' | 'runtime' | 'confirmed' | 'clockCompared' | 'delayed' | 'lost'>;

/** Opens the store, or finds out that another instance is the writer. */
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
