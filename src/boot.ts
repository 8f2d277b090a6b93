/** The composition root: wires store, authority and edges once, and shuts them down in order. */

import { hasRoom } from './authority/enrollment/room.ts';
import { type AuthorityOptions, type OpenAuthority, openAuthority } from './authority/open.ts';
import { LIST_THREAD_FROM } from './authority/publication/list-renderer.ts';
import { openQuarantine } from './authority/quarantine.ts';
import { createClock } from './clock.ts';
import type { Config } from './config/load.ts';
import { publishedDocument } from './contract/documents.ts';
import { createDocumentPublisher } from './contract/publications.ts';
import { sha256Hex } from './crypto/digest.ts';
import { type Front, openFront } from './front.ts';
import { createHeadKeeper, type HeadKeeper } from './head/keeper.ts';
import { type OpenedHeads, openHeads } from './head/open.ts';
import { createRateLimits } from './http/rate-limit.ts';
import type { JsonObject } from './json/value.ts';
import { canonicalJson, jsonText } from './json/write.ts';
import { createBackground } from './lifecycle/background.ts';
import { createFatal, type Fatal } from './lifecycle/fatal.ts';
import { freeSpace } from './lifecycle/free-space.ts';
import { createLifecycle, type StopPatience } from './lifecycle/lifecycle.ts';
import { createLogger, type LogDestination, type Logger } from './log/logger.ts';
import { problemText } from './log/problem.ts';
import {
  type AuthorityCounts,
  type AuthorityMetrics,
  createAuthorityMetrics,
  type MetricsReport,
} from './metrics.ts';
import type { GenesisBlock } from './records/genesis.ts';
import { instantOf } from './records/record.ts';
import { type ManualTime, type Runtime, timeOf, withClocks } from './runtime.ts';
import { measured } from './store/measured.ts';
import type { NetworkIdentity } from './store/network-identity.ts';
import { openStore } from './store/open.ts';
import type { Store } from './store/store.ts';
import { AUTHORITY_SLOT, createBeats, startBeating } from './threads/beats.ts';
import type { EdgeHost, EdgeThread } from './threads/edge-threads.ts';
import { type ListThreadIdentity, startListThread } from './threads/list-thread.ts';
import type { StartWatchdog } from './threads/watchdog.ts';
import { createTlsReload, type TlsReload, type TlsReloadOptions } from './tls/reload.ts';
import type { CommandReference } from './views/command-reference.ts';

export interface Surroundings {
  /** Its time is that of the clocks below. */
  readonly runtime: Runtime;
  /** Manually set clocks; null for the system's. */
  readonly manualTime: ManualTime | null;
  /** Where log lines go. */
  readonly destination: LogDestination;
  /** The number of lines that the log has dropped so far. */
  droppedLogLines(): number;
  readonly version: string;
  /** The command line, for the page that documents it. */
  readonly commands: CommandReference;
  startThread(onFailure: (cause: unknown) => void): EdgeThread;
  readonly startWatchdog: StartWatchdog;
  /**
   * Signed lists with at least this many entries are rendered on a thread of their own; null for the
   * default.
   */
  readonly listThreadFrom: number | null;
  /** Called when memory and disk no longer agree: the process has to end with a non-zero code. */
  readonly onFatal: (cause: unknown) => void;
}

export interface RunningAuthority {
  readonly port: number;
  readonly logger: Logger;
  /** Writes liveness now instead of at the next interval. */
  flush(): Promise<void>;
  /** Runs one step of retention. */
  sweep(): Promise<void>;
  /** Compares the clocks now instead of at the next interval. */
  checkClock(): Promise<void>;
  /** Asks how much space is left now instead of at the next interval. */
  checkDisk(): Promise<void>;
  /** Re-issues due signed lists now instead of at the next interval. */
  renewLists(): Promise<void>;
  /** Runs a trust cycle now instead of at the next interval. */
  runTrustCycle(): Promise<void>;
  /** Reads the TLS files now instead of at the next interval; null without TLS. */
  readonly reloadTls: (() => Promise<void>) | null;
  /** Resolves when everything that the edges have sent so far has arrived, log lines in particular. */
  settle(): Promise<void>;
  /** Ends the process because of an uncaught failure. */
  readonly fatal: Fatal;
  /** Finishes requests in flight, refuses new ones, flushes and releases the store. */
  stop(patience?: StopPatience): Promise<void>;
}

export async function startAuthority(
  config: Config,
  surroundings: Surroundings,
): Promise<RunningAuthority> {
  const { destination, version, onFatal, manualTime } = surroundings;
  const { logLevel: level, logFormat: format } = config;
  const metrics = createAuthorityMetrics(version, surroundings.droppedLogLines);
  const time = timeOf(manualTime);
  const clock = createClock(time, {
    stepped(byMs) {
      metrics.clockStepped(byMs);
      logger.write('WARNING', 'clock', `The system clock was set ${inWords(byMs)}`);
    },
    followed(byMs) {
      authority?.clockSet();
      logger.write('WARNING', 'clock', `The service follows a clock that was set ${inWords(byMs)}`);
    },
  });
  const runtime = withClocks(surroundings.runtime, time, clock.timeAt);
  const logger = createLogger({ level, format, destination, now: runtime.now });
  const publisher = createDocumentPublisher();
  publisher.publish('genesis', publishedDocument(jsonText(config.genesis)));

  const lifecycle = createLifecycle();
  const background = createBackground(logger, (job) => metrics.jobSucceeded(job, runtime.now()));
  const fatal = createFatal({
    logger,
    async silence() {
      lifecycle.enter('failed');
      authority?.seal();
      await front?.abandon();
    },
    end: onFatal,
  });
  let authority: OpenAuthority | null = null;
  let front: Front | null = null;

  const instanceId = runtime.uuid();
  const stored = await openStore({
    dataDir: config.dataDir,
    database: config.database,
    network: identityOf(config.genesis),
    instanceId,
    runtime: surroundings.runtime,
    lost: (problem) => fatal('ownership', new Error(problem)),
  });
  for (const note of stored.notes) logger.write('INFO', 'store', note);
  const timed = measured(stored.store, { elapsed: runtime.elapsed, stored: metrics.stored });
  const heads = await headsFor(config, timed);
  const quarantine = heads?.verdict.kind === 'quarantine' ? heads.verdict.reason : null;
  const head =
    heads === null || quarantine !== null ? null : keeperOf(config, heads, timed, runtime);
  const store = head?.store ?? timed;
  // They load their modules while the state is read.
  const threads = startThreads(config, (index) =>
    surroundings.startThread((cause) => fatal(`edge thread ${index + 1}`, cause)),
  );
  const beats = createBeats(threads.length);
  const watchdog = surroundings.startWatchdog(
    { beats, logLevel: level, logFormat: format },
    (cause) => fatal('watchdog thread', cause),
  );
  const vitals = {
    diskFree: await freeSpace(config.dataDir),
    minFree: config.minFree,
    tlsNotAfter: config.tls?.notAfter ?? null,
    delegatedUntil: instantOf(config.genesis.network_authority.valid_to),
  };
  try {
    const openState = (options: AuthorityOptions) =>
      quarantine === null
        ? openAuthority(options)
        : openQuarantine({
            store,
            publisher,
            heads: heads?.heads ?? [],
            signer: { ...config.signer, keyId: config.keyId },
            networkName: config.genesis.network_name,
            reason: quarantine,
          });
    const opened = await openState({
      vitals: () => vitals,
      ...authorityOptions(config, runtime),
      store,
      publisher,
      log: (event, details) => logAudit(logger, metrics, event, details),
      countRefusal: metrics.refused,
      fatal,
      listThreading: {
        from: surroundings.listThreadFrom ?? LIST_THREAD_FROM,
        startThread: () =>
          startListThread(listThreadIdentity(config), (cause) =>
            fatal('signed list thread', cause),
          ),
        notStarted: (cause) =>
          logger.write(
            'ERROR',
            'lists',
            `The thread for long signed lists has not started, so they are rendered beside other work until a list has doubled: ${problemText(cause)}`,
          ),
        edgesCaughtUp: () => front?.barrier() ?? NEVER,
      },
    });
    authority = opened;
    await head?.keep();
    const host: EdgeHost = {
      call: opened.call,
      publisher,
      limits: createRateLimits(config.rateLimits),
      viewers: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
      clock: clock.anchor,
      manualTime,
      beats,
      log: (lines) => destination.write(lines),
      exposition: (reports) => exposition(opened, metrics, reports),
      fatal,
    };
    const { commands } = surroundings;
    const instance = {
      id: instanceId,
      database: stored.database,
      signingKeyId: config.keyId,
    };
    // A thread that starts later may find no free file descriptor to load its modules.
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
    front = serving;
    const stopBeating = startBeating(beats, AUTHORITY_SLOT);
    lifecycle.enter('serving');
    const flushing = background.start('liveness_flush', config.livenessFlush, opened.flush);
    const checkingClock = background.start('clock_check', CLOCK_CHECK_MS, () => {
      clock.check();
      metrics.clockSkewed(clock.skew());
    });
    const renewing = background.start('list_renewal', LIST_RENEWAL_MS, opened.renewLists);
    const sweeping = background.start('retention', SWEEP_MS, opened.sweep);
    background.start('ownership_check', OWNERSHIP_CHECK_MS, () => {
      if (!store.isOwner()) {
        fatal('ownership', new Error(store.health() ?? 'Another process has taken over the state'));
      }
    });
    if (head !== null) {
      const failed = (cause: unknown) => fatal('head file', cause);
      background.start('head', HEAD_MS, () => head.keep().catch(failed));
    }
    background.start('live_refresh', LIVE_REFRESH_MS, () => refreshLivePages(host));
    const runTrustCycle = async () => void (await opened.call('runTrustCycle', null));
    const checkingDisk = background.start('disk_check', DISK_CHECK_MS, async () => {
      const had = hasRoom({ vitals: () => vitals });
      vitals.diskFree = await freeSpace(config.dataDir);
      const has = hasRoom({ vitals: () => vitals });
      if (had && !has) logger.write('ERROR', 'store', NO_ROOM);
      if (!had && has) logger.write('INFO', 'store', 'There is space again: nodes may be enrolled');
    });
    background.start('posture', POSTURE_MS, opened.judgePosture);
    const tls = tlsReload(config, {
      logger,
      now: runtime.now,
      use: serving.useTls,
      used({ notAfter }) {
        vitals.tlsNotAfter = notAfter;
        metrics.tlsNotAfter(notAfter);
      },
    });
    const reloading = tls && background.start('tls_reload', TLS_RELOAD_MS, tls.check);
    if (config.trustCycle !== null) {
      await background.start('trust_cycle', config.trustCycle, runTrustCycle).attempt();
    }
    if (quarantine !== null) logger.write('CRITICAL', 'store', quarantine);
    for (const warning of config.warnings) logger.write('WARNING', 'config', warning);

    /** The last flush has changed the state. */
    async function releaseHeads(): Promise<void> {
      if (head !== null) await head.close();
      else for (const file of heads?.files ?? []) file.release();
    }

    return {
      port: serving.port,
      logger,
      flush: flushing.runNow,
      sweep: sweeping.runNow,
      checkClock: checkingClock.runNow,
      checkDisk: checkingDisk.runNow,
      renewLists: renewing.runNow,
      runTrustCycle,
      reloadTls: reloading?.runNow ?? null,
      settle: serving.settle,
      fatal,
      stop: (patience = AT_ONCE) =>
        lifecycle.stop(
          {
            announce: serving.announce,
            drain: serving.drain,
            cut: serving.cut,
            async flush() {
              await background.stop();
              await opened.close();
              await releaseHeads();
            },
            async close() {
              await serving.close();
              stopBeating();
              await watchdog.end();
            },
          },
          patience,
        ),
    };
  } catch (cause) {
    // Not closed: a holder that was lost before this start must still count as lost at the next.
    await (authority ?? store).abandon();
    for (const file of heads?.files ?? []) file.release();
    await Promise.all([...threads.map((thread) => thread.end()), watchdog.end()]);
    throw cause;
  }
}

const AT_ONCE: StopPatience = { announceMs: 0, hurry: new AbortController().signal };

/** How often lists are checked; a list that is half a day old is re-issued. */
const LIST_RENEWAL_MS = 60_000;

/** Live pages change at most this often. */
const LIVE_REFRESH_MS = 500;
const CLOCK_CHECK_MS = 1000;
/** A process that has lost its state answers reads from memory for at most this long. */
const OWNERSHIP_CHECK_MS = 1000;
const SWEEP_MS = 1000;
/** The head in other places is at most this much behind, revocations apart. */
const HEAD_MS = 1000;

/** What is wrong is known this long after it begins, also while nobody reads the dashboard. */
const POSTURE_MS = 15_000;
/** Between two checks little can be written of what a full disk has to have room for. */
const DISK_CHECK_MS = 1000;
const NO_ROOM =
  'Less than MESH_MIN_FREE_MB is free on the disk of the state: invites, joins and new agents are refused';

/** How soon a new certificate is used; two small files are read for it. */
const TLS_RELOAD_MS = 10_000;

function inWords(byMs: number): string {
  return `${byMs > 0 ? 'forward' : 'back'} by ${(Math.abs(byMs) / 1000).toFixed(1)} s`;
}

function identityOf(genesis: GenesisBlock): NetworkIdentity {
  return {
    network_name: genesis.network_name,
    root_public_key: genesis.root_public_key,
    authority_public_key: genesis.network_authority.public_key,
  };
}

/** Null when no head is kept. A start that is refused leaves the state to others. */
async function headsFor({ heads, signer }: Config, store: Store): Promise<OpenedHeads | null> {
  if (heads.paths.length === 0) return null;
  try {
    return await openHeads(heads, store, signer.publicKey);
  } catch (cause) {
    await store.abandon();
    throw cause;
  }
}

function keeperOf(
  { signer, keyId, genesis }: Config,
  { files, position }: OpenedHeads,
  store: Store,
  { now }: Runtime,
): HeadKeeper {
  const networkName = genesis.network_name;
  return createHeadKeeper({ store, position, files, networkName, signer, keyId, now });
}

/** While there are viewers, outdated documents of live pages are rebuilt. */
async function refreshLivePages({ viewers, call }: EdgeHost): Promise<void> {
  if (Atomics.load(viewers, 0) === 0) return;
  await Promise.all([call('refreshDashboard', null), call('refreshGraph', null)]);
}

function startThreads({ threads }: Config, start: (index: number) => EdgeThread): EdgeThread[] {
  return threads === 1 ? [] : Array.from({ length: threads }, (_, index) => start(index));
}

/** Edges may exist already, but cannot be called yet. */
const NEVER = new Promise<void>(() => undefined);

function authorityOptions(config: Config, runtime: Runtime) {
  return {
    settings: {
      networkName: config.genesis.network_name,
      networkVersion: config.genesis.network_version,
      keyId: config.keyId,
      activeWindow: config.activeNodeWindow,
      renewalGrace: config.renewalGrace,
      refuseForeignIssuers: config.refuseForeignIssuers,
      commitWithinAgreement: config.commitWithinAgreement,
      singleRefusals: config.singleRefusals,
      foundedAt: instantOf(config.genesis.network_authority.valid_from),
      genesisDigest: sha256Hex(canonicalJson(config.genesis)),
    },
    operators: new Map(config.operators.map((operator) => [operator.keyId, operator])),
    clockTolerance: config.clockTolerance,
    flushInterval: config.livenessFlush,
    retention: config.retention,
    signer: config.signer,
    runtime,
  };
}

/** Null without TLS. */
function tlsReload({ tls }: Config, options: Omit<TlsReloadOptions, 'first'>): TlsReload | null {
  if (tls === null) return null;
  options.used(tls);
  return createTlsReload({ ...options, first: tls });
}

function listThreadIdentity({ signer, signingSeed, keyId }: Config): ListThreadIdentity {
  return { seed: signingSeed(), publicKey: signer.publicKey, keyId };
}

async function exposition(
  { call }: OpenAuthority,
  metrics: AuthorityMetrics,
  reports: readonly MetricsReport[],
): Promise<string> {
  const answer = await call('readCounts', null);
  if (answer.ok) return metrics.exposition(JSON.parse(answer.json) as AuthorityCounts, reports);
  if (answer.refusal === 'restore_pending') return metrics.exposition(null, reports);
  throw new Error(`The counts cannot be read: ${answer.refusal}`);
}

/** Audit entries are logged after they are stored; this logs the true reason of a refusal. */
function logAudit(
  logger: Logger,
  metrics: AuthorityMetrics,
  event: string,
  details: JsonObject,
): void {
  if (event === 'operator_signature_v1') metrics.operatorSignatureV1();
  const level = WARNINGS.has(event) ? 'WARNING' : 'INFO';
  const failed = event === 'trust_cycle_completed' && details.result === 'failed';
  logger.write(failed ? 'ERROR' : level, 'audit', `${event} ${jsonText(details)}`);
}

const WARNINGS: ReadonlySet<string> = new Set([
  'admin_auth_failed',
  'refusals_summarized',
  'admin_authz_denied',
  'node_auth_failed',
  'join_rejected',
  'heartbeat_rejected',
  'renewal_rejected',
  'no_privileged_operator_key_left',
  'operator_signature_v1',
]);
