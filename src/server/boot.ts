/** The composition root: wires store, authority and edges once, and shuts them down in order. */

import { setTimeout as delay } from 'node:timers/promises';
import type { ReadyState, SeenState } from '../authority/open.ts';
import { createClock } from '../base/clock.ts';
import { jsonText } from '../base/json/write.ts';
import { createLogger, type LogDestination, type Logger } from '../base/log/logger.ts';
import { problemText } from '../base/log/problem.ts';
import { type ManualTime, type Runtime, timeOf, withClocks } from '../base/runtime.ts';
import type { LabeledKey } from '../base/signer/authority-signer.ts';
import { createRateLimits } from '../edge/limits/rate-limit.ts';
import { createRequestQueue } from '../edge/limits/request-queue.ts';
import type { MetricsReport } from '../edge/metrics.ts';
import type { CommandReference } from '../pages/reference/command-reference.ts';
import { type Call, UNAVAILABLE } from '../protocol/contract/calls.ts';
import {
  documentText,
  type PublishedDocument,
  publishedDocument,
} from '../protocol/contract/documents.ts';
import { createDocumentPublisher } from '../protocol/contract/publications.ts';
import { instantOf } from '../protocol/records/record.ts';
import type { RefusalName } from '../protocol/refusals.ts';
import { databaseOf, type OpenedStore } from '../store/open.ts';
import type { Config } from './config/load.ts';
import { type Front, openFront } from './front.ts';
import { createHistoryRecorder } from './history-recorder.ts';
import { haModeOf, joinInstances } from './instances.ts';
import { createBackground } from './lifecycle/background.ts';
import { createFatal, type Fatal } from './lifecycle/fatal.ts';
import { createLifecycle, type StopPatience } from './lifecycle/lifecycle.ts';
import { freeSpace } from './lifecycle/system-limits.ts';
import { type AuthorityMetrics, createAuthorityMetrics } from './metrics/authority.ts';
import type { AuthorityCounts } from './metrics/state.ts';
import { type Role, STARTING } from './role.ts';
import { openServiceSigner } from './service-signer.ts';
import { followSessionSecret } from './session-secrets.ts';
import { AUTHORITY_SLOT, createBeats, createPulse } from './threads/beats.ts';
import type { EdgeHost, EdgeThread } from './threads/edge-threads.ts';
import type { StartWatchdog } from './threads/watchdog.ts';
import { beginUpkeep } from './upkeep.ts';
import { waitForTurn } from './waiting.ts';
import { openWriter, type StateContext, type Writer } from './writer.ts';

/** How soon heartbeat sessions are possible again after a signer was unavailable when another key became current. */
const SESSION_SECRET_MS = 10_000;

export interface BootOptions {
  /** Its time comes from the clocks below. */
  readonly runtime: Runtime;
  /** Manually set clocks; null for the system clocks. */
  readonly manualTime: ManualTime | null;
  /** Receives the log lines. */
  readonly destination: LogDestination;
  /** The number of log lines dropped so far. */
  droppedLogLines(): number;
  readonly version: string;
  /** The command line, for the page that documents it. */
  readonly commands: CommandReference;
  startThread(onFailure: (cause: unknown) => void): EdgeThread;
  readonly startWatchdog: StartWatchdog;
  /** Signed lists with at least this many entries are rendered on a separate thread; null for the default. */
  readonly listThreadFrom: number | null;
  /** Called when memory and disk no longer agree: the process must exit with a non-zero code. */
  readonly onFatal: (cause: unknown) => void;
}

export interface RunningAuthority {
  readonly port: number;
  readonly logger: Logger;
  /** The key that signs, which the state may name instead of the configuration. */
  readonly key: LabeledKey;
  /** Runs a periodic job now instead of at its next interval; rejects if it fails, or if it does not run here. */
  runJob(name: string): Promise<void>;
  /** Resolves when everything that the edges have sent so far, log lines in particular, has arrived. */
  settle(): Promise<void>;
  /** Ends the process because of an uncaught failure. */
  readonly fatal: Fatal;
  /** Refuses new requests, finishes those in flight, flushes, and releases the store. */
  stop(patience?: StopPatience): Promise<void>;
}

export async function startAuthority(
  config: Config,
  options: BootOptions,
): Promise<RunningAuthority> {
  const { destination, version, onFatal, manualTime } = options;
  const { logLevel: level, logFormat: format } = config;
  const metrics = createAuthorityMetrics(version, options.droppedLogLines);
  const time = timeOf(manualTime);
  const clock = createClock(time, {
    stepped(byMs) {
      metrics.clockStepped(byMs);
      logger.write('WARNING', 'clock', `The system clock was set ${inWords(byMs)}`);
    },
    followed(byMs) {
      role.clockSet(byMs);
      logger.write('WARNING', 'clock', `The service follows a clock that was set ${inWords(byMs)}`);
    },
  });
  const runtime = withClocks(options.runtime, time, clock.timeAt);
  const logger = createLogger({ level, format, destination, now: runtime.now });
  const publisher = createDocumentPublisher();
  publisher.publish('genesis', publishedDocument(jsonText(config.genesis)));
  let genesis = config.genesis;
  publisher.follow(({ name, document }) => {
    if (name === 'genesis') genesis = JSON.parse(documentText(document));
  });

  const lifecycle = createLifecycle();
  const background = createBackground(logger, (job) => metrics.jobSucceeded(job, runtime.now()));
  const fatal = createFatal({
    logger,
    folder: config.dataDir,
    async silence() {
      lifecycle.enter('failed');
      await Promise.all(silencers.map((silence) => silence()));
    },
    end: onFatal,
  });
  let role: Role = STARTING;
  /** The revocation list that was passed on last. */
  let lastList: PublishedDocument | undefined;
  /** Each stops a component that could still answer. */
  const silencers: (() => void | Promise<void>)[] = [() => role.seal()];
  // Edges may already exist, but they cannot be called before the front is open.
  let frontOpened: (opened: Front) => void = () => undefined;
  const front = new Promise<Front>((resolve) => {
    frontOpened = resolve;
  });
  const edgesCaughtUp = async () => (await front).barrier();

  const instanceId = runtime.uuid();
  const limits = createRateLimits(config.rateLimits);
  const beats = createBeats(config.threads === 1 ? 0 : config.threads);
  const pulse = createPulse(beats, AUTHORITY_SLOT);
  const queue = createRequestQueue({
    longestWaitMs: config.longestWaitMs,
    elapsed: runtime.elapsed,
    schedule: setImmediate,
    progress: pulse.beat,
  });
  const signer = await openServiceSigner({
    config,
    logger,
    metrics,
    fatal,
    elapsed: options.runtime.elapsed,
  });
  const joined = await joinInstances({
    config,
    instanceId,
    signer,
    publisher,
    logger,
    metrics,
    runtime: options.runtime,
    gateFailed: (cause) => fatal('gate thread', cause),
    lost: (problem) => fatal('ownership', new Error(problem)),
  }).catch(async (cause) => {
    await signer.close();
    throw cause;
  });
  silencers.push(joined.close);
  const { instanceStatus, turn } = joined;
  // The threads load their modules while the state is being read.
  const threads = startThreads(config, (index) =>
    options.startThread((cause) => fatal(`edge thread ${index + 1}`, cause)),
  );
  const watchdog = options.startWatchdog({ beats, logLevel: level, logFormat: format }, (cause) =>
    fatal('watchdog thread', cause),
  );
  const hostStatus = {
    diskFree: await freeSpace(config.dataDir),
    minFree: config.minFree,
    tlsNotAfter: config.tls?.notAfter ?? null,
    get delegatedUntil() {
      return instantOf(genesis.network_authority.valid_to);
    },
    get backup() {
      return role.backupFacts();
    },
    get webhooks() {
      return role.webhooks();
    },
    get signs() {
      return signer.isAvailable();
    },
    get instances() {
      return joined.rows();
    },
    instancesWithout: (publicKey: string) =>
      joined.standbys().filter(({ nextKey }) => nextKey !== publicKey).length,
  };
  const ofState: StateContext = {
    config,
    signer,
    runtime,
    publisher,
    logger,
    fatal,
    listThreadFrom: options.listThreadFrom,
    edgesCaughtUp,
  };
  async function write(opened: OpenedStore, ready: ReadyState | null, seen: SeenState | null) {
    const options = { ...ofState, opened, ready, seen, metrics, hostStatus: () => hostStatus };
    const writer = await openWriter(options);
    role = writer;
    return writer;
  }

  function lead({ call }: Writer, { tenure }: OpenedStore): void {
    if (tenure !== null) joined.lead(call, tenure);
  }

  async function waitAndTake(): Promise<void> {
    logger.write(
      'INFO',
      'store',
      `${turn.holder} is the writer; this instance is waiting for its turn`,
    );
    const waiting = waitForTurn(ofState, joined.looked, () => lastList);
    role = waiting;
    const opened = await turn.opening;
    if (lifecycle.state !== 'serving') return opened.store.abandon();
    const ready = opened.tenure && (await waiting.take(opened.tenure.previousOwner));
    const seen = waiting.seen();
    const writer = await write(opened, ready, seen);
    if (lifecycle.state !== 'serving') return;
    lead(writer, opened);
    await writer.begin(background);
  }

  /** Each ends a component that would serve or run after a start that failed. */
  const enders: (() => void | Promise<void>)[] = [];
  try {
    const first = turn.opened && (await write(turn.opened, null, null));
    if (first !== null && turn.opened !== null) lead(first, turn.opened);
    const here: Call = (instanceStatus === null && first?.call) || joined.call;
    const host: EdgeHost = {
      call: here,
      queue,
      publisher,
      limits,
      viewers: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
      clock: clock.anchor,
      manualTime,
      beats,
      instanceStatus: instanceStatus?.memory ?? null,
      socketFolder: joined.socketFolder,
      copied(copy) {
        if (copy.path === '/crl') lastList = copy.document;
        void front.then((opened) => opened.keepCopy(copy));
      },
      log: (lines) => destination.write(lines),
      exposition(reports) {
        if (instanceStatus !== null)
          metrics.instanceStatus(instanceStatus, joined.standbys(), joined.leaseRemaining());
        // Only the writer reports the counts, so that they appear once.
        return exposition(role.call ?? (() => UNAVAILABLE), metrics, reports);
      },
    };
    const { commands } = options;
    const instance = {
      id: instanceId,
      database: databaseOf(config.database),
      signingKeyId: config.keyId,
      haMode: haModeOf(config),
    };
    // If the thread started later, it might find no free file descriptor to load its modules.
    await watchdog.ready;
    const serving = await openFront({
      config,
      instance,
      commands,
      runtime,
      logger,
      host,
      threads,
    });
    silencers.push(serving.abandon);
    enders.push(serving.abandon);
    frontOpened(serving);
    joined.follow(serving.forwardTo);
    if (config.heartbeatSession !== null) {
      const { genesis } = config;
      const use = serving.useSessionSecret;
      const derive = followSessionSecret({ signer, genesis, publisher, use });
      background.start('session_secret', SESSION_SECRET_MS, derive);
    }
    pulse.begin();
    enders.push(pulse.end, background.stop);
    lifecycle.enter('serving');
    beginUpkeep(background, {
      config,
      clock,
      hostStatus,
      host,
      edges: serving,
      logger,
      metrics,
      now: runtime.now,
    });
    const history = createHistoryRecorder({
      source: runtime.randomBytes(6).readUIntBE(0, 6),
      now: runtime.now,
      reports: async () => [...(await serving.reports()), await metrics.report()],
      counts: async () => (await role.call?.('readCounts', null)) ?? UNAVAILABLE,
      diskFree: () => hostStatus.diskFree,
      record: (part) => here('recordHistory', part),
      logger,
    });
    background.start('history', HISTORY_CHECK_MS, history.check);
    const taking = first === null ? waitAndTake() : null;
    await first?.begin(background);
    // A start may last longer than the lease, until its next renewal.
    await turn.opened?.tenure?.heldSince(options.runtime.elapsed());
    taking?.catch((cause) => {
      if (lifecycle.state === 'serving') fatal('taking over', cause);
    });
    for (const warning of config.warnings) logger.write('WARNING', 'config', warning);

    return {
      port: serving.port,
      logger,
      key: { publicKey: signer.publicKey, keyId: signer.keyId },
      runJob: background.runNow,
      settle: serving.settle,
      fatal,
      stop: (patience = AT_ONCE) =>
        lifecycle.stop(
          {
            announce: serving.announce,
            drain: serving.drain,
            cut: serving.cut,
            async flush() {
              turn.giveUp();
              await taking?.catch(() => undefined);
              role.endReaders();
              await background.stop();
              await history.finish();
              await role.close();
            },
            overrun() {
              // Otherwise the lease would be renewed for as long as the process lives.
              if (instanceStatus !== null) fatal('stop', new Error(OVERRUN));
            },
            async close() {
              await joined.close();
              await serving.close();
              pulse.end();
              await Promise.all([watchdog.end(), signer.close()]);
            },
          },
          patience,
        ),
    };
  } catch (cause) {
    async function end(): Promise<void> {
      role.seal();
      role.endReaders();
      turn.giveUp();
      await joined.close();
      for (const ender of enders) await ender();
      await role.abandon();
      await Promise.all([...threads.map((thread) => thread.end()), watchdog.end(), signer.close()]);
    }
    // What cannot end, such as a request to a database that does not answer, must not hide the cause.
    const failed = (problem: unknown) =>
      logger.write('ERROR', 'server', `The end of a failed start: ${problemText(problem)}`);
    await Promise.race([end().catch(failed), delay(ABANDON_MS, undefined, { ref: false })]);
    throw cause;
  }
}

/** How long a start that failed may take to end what it has begun. */
const ABANDON_MS = 10_000;

const OVERRUN =
  'Data that is only in memory could not be stored in time; this process exits so that another instance can take over';

/** How late a minute may be recorded. */
const HISTORY_CHECK_MS = 1000;

const AT_ONCE: StopPatience = { announceMs: 0, hurry: new AbortController().signal };

function inWords(byMs: number): string {
  return `${byMs > 0 ? 'forward' : 'back'} by ${(Math.abs(byMs) / 1000).toFixed(1)} s`;
}

function startThreads({ threads }: Config, start: (index: number) => EdgeThread): EdgeThread[] {
  return threads === 1 ? [] : Array.from({ length: threads }, (_, index) => start(index));
}

async function exposition(
  call: Call,
  metrics: AuthorityMetrics,
  reports: readonly MetricsReport[],
): Promise<string> {
  const answer = await call('readCounts', null);
  if (answer.ok) return metrics.exposition(JSON.parse(answer.json) as AuthorityCounts, reports);
  if (UNCOUNTED.has(answer.refusal)) return metrics.exposition(answer.refusal, reports);
  throw new Error(`The counts cannot be read: ${answer.refusal}`);
}

/** The state was rolled back, or another instance writes it. */
const UNCOUNTED: ReadonlySet<RefusalName> = new Set(['restore_pending', 'authority_unavailable']);
