/** What every part of an instance uses: its clocks, log, metrics, published documents, and the states of the process. */
import type { HostStatus } from '../authority/host-status.ts';
import type { OpenAuthority } from '../authority/open.ts';
import { createClock } from '../base/clock.ts';
import { jsonText } from '../base/json/write.ts';
import { createLogger, type LogDestination } from '../base/log/logger.ts';
import { type After, type ManualTime, type Runtime, timeOf, withClocks } from '../base/runtime.ts';
import type { CommandReference } from '../pages/reference/cli-reference.ts';
import type { Call } from '../protocol/contract/calls.ts';
import {
  createDocumentPublisher,
  documentText,
  publishedDocument,
} from '../protocol/contract/documents.ts';
import type { Config } from './config/load.ts';
import { createBackground } from './lifecycle/background.ts';
import { createFatal, createLifecycle } from './lifecycle/lifecycle.ts';
import { createAuthorityMetrics } from './metrics/authority.ts';
import type { StartWatchdog } from './threads/beats.ts';
import type { EdgeThread } from './threads/edge-threads.ts';

export interface BootOptions {
  /** Its time comes from the clocks below. */
  readonly runtime: Runtime;
  /** Manually set clocks; null for the system clocks. */
  readonly manualTime: ManualTime | null;
  /** Schedules periodic work: by the system's timers, or by the manually set clocks. */
  readonly after: After;
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

export type Base = ReturnType<typeof createBase>;

export function createBase(config: Config, options: BootOptions) {
  const place: { role: Role } = { role: STARTING };
  const silencers: (() => void | Promise<void>)[] = [() => place.role.seal()];
  const metrics = createAuthorityMetrics(options.version, options.droppedLogLines);
  const time = timeOf(options.manualTime);
  const clock = createClock(time, {
    stepped(byMs) {
      metrics.clockStepped(byMs);
      logger.write('WARNING', 'clock', `The system clock was set ${inWords(byMs)}`);
    },
    followed(byMs) {
      place.role.clockSet(byMs);
      logger.write('WARNING', 'clock', `The service follows a clock that was set ${inWords(byMs)}`);
    },
  });
  const runtime = withClocks(options.runtime, time, clock.timeAt);
  const logger = createLogger({
    ...config.log,
    destination: options.destination,
    now: runtime.now,
  });
  const lifecycle = createLifecycle();
  const publisher = createDocumentPublisher();
  publisher.publish('genesis', publishedDocument(jsonText(config.genesis)));
  return {
    config,
    options,
    /** What this instance is now. */
    place,
    metrics,
    clock,
    runtime,
    logger,
    publisher,
    genesis: newestGenesis(config, publisher),
    lifecycle,
    background: createBackground({
      after: options.after,
      logger,
      succeeded: (job) => metrics.jobSucceeded(job, runtime.now()),
    }),
    /** Each stops a component that could still answer. */
    silencers,
    fatal: createFatal({
      logger,
      folder: config.dataDir,
      async silence() {
        lifecycle.enter('failed');
        await Promise.all(silencers.map((silence) => silence()));
      },
      end: options.onFatal,
    }),
  };
}

function newestGenesis(config: Config, publisher: ReturnType<typeof createDocumentPublisher>) {
  let genesis = config.genesis;
  publisher.follow(({ name, document }) => {
    if (name === 'genesis') genesis = JSON.parse(documentText(document));
  });
  return () => genesis;
}

function inWords(byMs: number): string {
  return `${byMs > 0 ? 'forward' : 'back'} by ${(Math.abs(byMs) / 1000).toFixed(1)} s`;
}

/** The role of an instance: it is a standby (`standby.ts`) or active (`active.ts`). */
export interface Role {
  /** The authority; null if another instance is active. */
  readonly call: Call | null;
  readonly clockSet: OpenAuthority['clockSet'];
  readonly seal: OpenAuthority['seal'];
  /** Null without a backup schedule. */
  backupFacts(): HostStatus['backup'];
  webhooks(): HostStatus['webhooks'];
  partners(): HostStatus['partners'];
  /** Ends the processes that read the state and what other sovereigns are fetched for, and prevents new ones. */
  endReaders(): void;
  /** Flushes for the last time and releases the state; call when no periodic work is running. */
  close(): Promise<void>;
  /** Releases the state as if this process had died. */
  abandon(): Promise<void>;
}

/** The role at startup, without any state to release. */
export const STARTING: Role = {
  call: null,
  clockSet: () => undefined,
  seal: () => undefined,
  backupFacts: () => null,
  webhooks: () => [],
  partners: () => new Map(),
  endReaders: () => undefined,
  close: async () => undefined,
  abandon: async () => undefined,
};
