/** A real authority for tests, with a real port and a real LMDB folder; only the clock is set manually. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import type { Signer } from '../../src/base/crypto/primitives.ts';
import { readKeyFile } from '../../src/base/keys/key-file.ts';
import { systemRuntime } from '../../src/base/runtime.ts';
import type { CommandReference } from '../../src/pages/reference/cli-reference.ts';
import { RATE_BUCKETS } from '../../src/protocol/route-description.ts';
import { startAuthority } from '../../src/server/boot.ts';
import { loadConfig } from '../../src/server/config/load.ts';
import type { Environment, Flags } from '../../src/server/config/options.ts';
import { NO_WATCHDOG } from '../../src/server/threads/beats.ts';
import { type EdgeThread, edgeThreadOn } from '../../src/server/threads/edge-threads.ts';
import { startWorker } from '../../src/server/threads/rpc.ts';
import { type TestClock, testClock } from './clock.ts';
import { makeNetworkFolder } from './folders.ts';
import { removeStore, storeFlags } from './test-stores.ts';

export interface TestOptions {
  readonly environment?: Environment;
  readonly flags?: Flags;
  readonly clock?: TestClock;
  /** The number of entries from which a signed list is rendered on a separate thread. */
  readonly listThreadFrom?: number;
  /** The folder of an earlier authority; if given, it is not removed at the end. */
  readonly dataDir?: string;
  /** The content of the command reference; empty unless given. */
  readonly commands?: CommandReference;
}

export interface TestOperator {
  readonly keyId: string;
  readonly key: Signer;
}

export interface TestAuthority {
  readonly url: string;
  readonly dataDir: string;
  readonly clock: TestClock;
  /** Base64 public key of the authority: the audience of signed requests. */
  readonly audience: string;
  readonly privileged: TestOperator;
  readonly standard: TestOperator;
  /** Every log line written so far. */
  readonly logLines: readonly string[];
  flush(): Promise<void>;
  /** Runs one step of retention. */
  sweep(): Promise<void>;
  /** Activates a due succession, or ends an overlap, as the service does every second. */
  keepKeys(): Promise<void>;
  /** Compares the clocks, as the service does every second. */
  checkClock(): Promise<void>;
  /** Checks how much space is left, as the service does every second. */
  checkDisk(): Promise<void>;
  renewLists(): Promise<void>;
  /** Records the minute of the history that has ended, as the service does every second. */
  recordHistory(): Promise<void>;
  runTrustCycle(): Promise<void>;
  /** Fetches the partners that are due. */
  federate(): Promise<void>;
  /** Makes a backup if one is due. */
  backUp(): Promise<void>;
  /** Reads the TLS files, as the service does every ten seconds. */
  reloadTls(): Promise<void>;
  /** Resolves when the log lines of edges on other threads have arrived; `send` awaits it. */
  settle(): Promise<void>;
  stop(): Promise<void>;
  /** Stops and starts again on the same folder, with the same clock. */
  restart(): Promise<TestAuthority>;
  [Symbol.asyncDispose](): Promise<void>;
}

const NO_COMMANDS: CommandReference = {
  name: 'mesh-na',
  description: '',
  version: 'test',
  options: [],
  notes: '',
  commands: [],
};

/** The number of threads; the entire suite passes with any number. */
const THREADS = process.env.MESH_TEST_THREADS ?? '1';
const LIST_THREAD_FROM = process.env.MESH_TEST_LIST_THREAD_FROM;

/** Rate limits and trust cycles are off unless a test turns them on. Nobody else takes over the database. */
const UNLIMITED: Environment = {
  MESH_RATE_LIMIT_ADMIN: 'off',
  MESH_RATE_LIMIT_JOIN: 'off',
  MESH_RATE_LIMIT_JOIN_FAILURES: 'off',
  MESH_RATE_LIMIT_NODE_FAILURES: 'off',
  MESH_RATE_LIMIT_AUTH_FAILURES: 'off',
  MESH_TRUST_CYCLE_HOURS: '0',
  // On a busy machine, a process may stall for longer than a lease usually lasts; no test waits for this one to
  // expire.
  MESH_LEASE_MS: '20000',
};

/** Use with `await using`, so that the authority stops and its folder is removed no matter what the test does. */
export async function startTestAuthority(options: TestOptions = {}): Promise<TestAuthority> {
  const dataDir = options.dataDir ?? makeNetworkFolder().folder;
  const clock = options.clock ?? testClock();
  const logLines: string[] = [];
  const config = loadConfig(
    { dataDir, port: '0', threads: THREADS, ...(await storeFlags(dataDir)), ...options.flags },
    { ...UNLIMITED, ...options.environment },
    clock.now(),
  );
  const running = await startAuthority(config, {
    runtime: systemRuntime,
    manualTime: clock.shared,
    after: clock.after,
    startThread: reusedEdgeThread,
    // The watchdog would end the tests' own process if a test blocks its thread.
    startWatchdog: () => NO_WATCHDOG,
    listThreadFrom: options.listThreadFrom ?? (LIST_THREAD_FROM ? Number(LIST_THREAD_FROM) : null),
    destination: { write: (lines) => logLines.push(...lines.split(/(?<=\n)/)) },
    droppedLogLines: () => 0,
    version: 'test',
    commands: options.commands ?? NO_COMMANDS,
    onFatal(cause) {
      throw cause;
    },
  });
  let stopped = false;

  async function runJob(name: string): Promise<void> {
    await clock.idle();
    await running.runJob(name);
  }

  async function stop(): Promise<void> {
    if (stopped) return;
    stopped = true;
    await running.stop();
  }

  return {
    url: `${config.tls === null ? 'http' : 'https'}://127.0.0.1:${running.port}`,
    dataDir,
    clock,
    audience: config.publicKey,
    privileged: operatorFrom(dataDir, 'ops-privileged', 'operator-privileged'),
    standard: operatorFrom(dataDir, 'ops-standard', 'operator-standard'),
    logLines,
    flush: () => runJob('liveness_flush'),
    sweep: () => runJob('retention'),
    keepKeys: () => runJob('authority_keys'),
    checkClock: () => runJob('clock_check'),
    checkDisk: () => runJob('disk_check'),
    renewLists: () => runJob('list_renewal'),
    recordHistory: () => runJob('history'),
    runTrustCycle: () => runJob('trust_cycle'),
    federate: () => runJob('federation'),
    backUp: () => runJob('backup'),
    reloadTls: () => runJob('tls_reload'),
    settle: running.settle,
    stop,
    async restart() {
      await stop();
      return startTestAuthority({ ...options, dataDir, clock });
    },
    async [Symbol.asyncDispose]() {
      await stop();
      if (options.dataDir !== undefined) return;
      rmSync(dataDir, { recursive: true, force: true });
      await removeStore(dataDir);
    },
  };
}

function operatorFrom(dataDir: string, keyId: string, file: string): TestOperator {
  return { keyId, key: signerFromSeed(readKeyFile(join(dataDir, 'keys', `${file}.key`))) };
}

/** No limit at all applies to an authority that tests share. */
const NO_LIMITS = Object.fromEntries(
  RATE_BUCKETS.map((bucket) => [`MESH_RATE_LIMIT_${bucket}`, 'off']),
);

/** The authority starts when the first test needs it, and has no rate limits unless the options set them. */
export function sharedAuthority({ environment, ...options }: TestOptions = {}) {
  let started: Promise<TestAuthority> | null = null;
  after(async () => (await started)?.[Symbol.asyncDispose]());
  return () => {
    started ??= startTestAuthority({ ...options, environment: { ...NO_LIMITS, ...environment } });
    return started;
  };
}

/** Edge threads that tests reuse: starting new ones for every server would take most of the time. */
const idle: Worker[] = [];

/** A thread of an earlier server, or a new one; it does not keep the process alive while it is idle. */
function reusedEdgeThread(onFailure: (cause: unknown) => void): EdgeThread {
  const worker = idle.pop() ?? startWorker('edge');
  worker.removeAllListeners();
  worker.ref();
  return {
    ...edgeThreadOn(worker, onFailure),
    async end() {
      worker.unref();
      idle.push(worker);
    },
  };
}
