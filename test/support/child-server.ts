/** Runs the program in a separate process, which can be killed, and captures its output. */
import assert from 'node:assert/strict';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after } from 'node:test';
import { signerFromSeed } from '../../src/base/crypto/ed25519.ts';
import { readKeyFile } from '../../src/base/keys/key-file.ts';
import type { TestAuthority, TestOperator } from './authority.ts';
import { REAL_TIME } from './clock.ts';
import { withoutSettings } from './isolation.ts';
import { spawnNode } from './processes.ts';
import { PROGRAM } from './project.ts';
import { storeFlags } from './test-stores.ts';

export type ChildEnvironment = { readonly [name: string]: string };

export interface Ended {
  /** Null if a signal ended the process. */
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ChildServer {
  /** The authority for the request helpers; it cannot be flushed from outside. */
  readonly na: TestAuthority;
  readonly process: ChildProcess;
  /** Everything the process has written to standard output. */
  output(): string;
  /** Everything it has written to standard error. */
  log(): string;
  /** Sends the signal and waits for the process to end. */
  end(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT' | 'SIGHUP'): Promise<Ended>;
  /** How the process ended, once it has. */
  readonly ended: Promise<Ended>;
  /** Kills the process unless it has ended. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ChildOptions {
  readonly environment?: ChildEnvironment;
  readonly args?: readonly string[];
  /** What Node.js runs; by default the program of these sources. */
  readonly program?: readonly string[];
  /** A command that runs Node.js, such as one that gives it a terminal. */
  readonly before?: readonly string[];
  /** Called with the process as soon as it runs, before it is ready. */
  readonly onSpawn?: (process: ChildProcess) => void;
}

/** Processes that are still running; those of a failed test run until the end of its file. */
const running = new Set<ChildProcess>();
after(() => {
  for (const child of running) child.kill('SIGKILL');
});

export const NO_LIMITS: ChildEnvironment = {
  MESH_RATE_LIMIT_ADMIN: 'off',
  MESH_RATE_LIMIT_JOIN: 'off',
  MESH_RATE_LIMIT_JOIN_FAILURES: 'off',
  MESH_RATE_LIMIT_NODE_FAILURES: 'off',
  MESH_RATE_LIMIT_AUTH_FAILURES: 'off',
  MESH_TRUST_CYCLE_HOURS: '0',
};

/** Each further thread would double what a start costs; tests about threads set their number. */
const QUICK: ChildEnvironment = {
  MESH_DRAIN_SECONDS: '0',
  MESH_THREADS: process.env.MESH_TEST_THREADS ?? '1',
};

/** Starts `mesh-na serve` on the folder; resolves when it is ready, rejects if it ends before that. */
export async function startChildServer(
  dataDir: string,
  { environment = NO_LIMITS, args = [], program = PROGRAM, before, onSpawn }: ChildOptions = {},
): Promise<ChildServer> {
  const namesStore = 'MESH_STORE' in environment || args.includes('--store');
  const { store } = namesStore ? {} : await storeFlags(dataDir);
  const place = typeof store === 'string' ? ['--store', store] : [];
  const port = args.includes('--port') ? [] : ['--port', '0'];
  const serve = ['serve', '--data-dir', dataDir, ...port, '--json', ...place, ...args];
  const { process, ended, stdout, stderr } = spawnProgram(serve, environment, program, before);
  onSpawn?.(process);
  const ready = await Promise.race([readyLine(process), ended]);
  if ('code' in ready) throw new Error(`The server ended with ${ready.code}: ${ready.stderr}`);
  const server: ChildServer = {
    na: {
      url: ready.url,
      dataDir,
      clock: REAL_TIME,
      audience: ready.na_public_key,
      privileged: operatorOf(dataDir, 'ops-privileged', 'operator-privileged'),
      standard: operatorOf(dataDir, 'ops-standard', 'operator-standard'),
      logLines: [],
      settle: () => Promise.resolve(),
      flush: byItself('flushes'),
      sweep: byItself('sweeps'),
      keepKeys: byItself('keeps its keys'),
      checkClock: byItself('checks its clock'),
      checkDisk: byItself('checks its disk'),
      renewLists: byItself('renews its lists'),
      recordHistory: byItself('records its history'),
      runTrustCycle: byItself('checks its trust'),
      federate: byItself('fetches'),
      backUp: byItself('backs up'),
      reloadTls: byItself('reads its TLS files'),
      stop: () => server.end('SIGTERM').then(() => undefined),
      async restart() {
        await server.end('SIGTERM');
        return (await startChildServer(dataDir, { environment, args, program })).na;
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    },
    process,
    output: stdout,
    log: stderr,
    ended,
    end(signal) {
      process.kill(signal);
      return ended;
    },
    [Symbol.asyncDispose]: () => server.end('SIGKILL').then(() => undefined),
  };
  return server;
}

const byItself = (does: string) => () =>
  Promise.reject(new Error(`A server in another process ${does} by itself`));

/** Runs a command of the program until it ends. */
export function runProgram(
  args: readonly string[],
  environment: ChildEnvironment = {},
  onSpawn: (process: ChildProcess) => void = () => undefined,
): Promise<Ended> {
  const { process, ended } = spawnProgram(args, environment);
  onSpawn(process);
  return ended;
}

/** Runs a command of the program until it ends, through another command that turns into Node.js. */
export function runProgramBehind(
  before: readonly string[],
  args: readonly string[],
  environment: ChildEnvironment = NO_LIMITS,
  onSpawn: (process: ChildProcess) => void = () => undefined,
): Promise<Ended> {
  const { process, ended } = spawnProgram(args, environment, PROGRAM, before);
  onSpawn(process);
  return ended;
}

function spawnProgram(
  args: readonly string[],
  environment: ChildEnvironment,
  program: readonly string[] = PROGRAM,
  before: readonly string[] = [],
) {
  const options: SpawnOptions = {
    env: { ...withoutSettings(process.env), ...QUICK, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  };
  const child = spawnNode([...program, ...args], options, before);
  running.add(child);
  child.once('exit', () => running.delete(child));
  const [out, err]: [string[], string[]] = [[], []];
  assert.ok(child.stdout !== null && child.stderr !== null);
  child.stdout.setEncoding('utf8').on('data', (text: string) => out.push(text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => err.push(text));
  const stdout = () => out.join('');
  const stderr = () => err.join('');
  const ended: Promise<Ended> = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
    stdout: stdout(),
    stderr: stderr(),
  }));
  return { process: child, ended, stdout, stderr };
}

interface ReadyLine {
  readonly url: string;
  readonly na_public_key: string;
}

/** The JSON object with the server's address; log lines are on the same stream. */
async function readyLine({ stdout }: ChildProcess): Promise<ReadyLine> {
  if (stdout === null) throw new Error('The process has no standard output');
  const lines = createInterface({ input: stdout });
  try {
    for await (const line of lines) {
      if (line.startsWith('{') && line.includes('"port"')) return JSON.parse(line) as ReadyLine;
    }
  } finally {
    stdout.resume();
  }
  // The output at the end of the process shows why; `startChildServer` also waits for that.
  return new Promise(() => undefined);
}

function operatorOf(dataDir: string, keyId: string, file: string): TestOperator {
  return { keyId, key: signerFromSeed(readKeyFile(join(dataDir, 'keys', `${file}.key`))) };
}
