/** The servers under test, each in its own process: the authority as shipped, and the bare server. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { initNetwork } from '../src/cli/service/init-network.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import type { BareWork } from './bare-server.ts';
import { childOptions, hasEnded, killChild, ROOT, stopChild, watchChild } from './children.ts';
import type { Network } from './fleet.ts';
import type { Target } from './round.ts';

/** A large network on a busy machine starts slowly. */
const START_MS = 120_000;

/** Turns off limits that would refuse the run itself. Limits on failures stay on, because they are part of the work. */
const ENVIRONMENT = {
  MESH_RATE_LIMIT_ADMIN: 'off',
  MESH_RATE_LIMIT_JOIN: 'off',
  MESH_RATE_LIMIT_VERIFY: 'off',
};

export type AuthorityProcess = Target &
  AsyncDisposable & {
    readonly url: string;
    readonly network: Network;
    /** The same for the privileged operator. */
    readonly privileged: Network;
    readonly dataDir: string;
    /** Ends the process as if its machine had failed. */
    kill(): Promise<void>;
  };
export type BareProcess = Target & AsyncDisposable;

/** The same flags as in `npm start`. */
const NODE_FLAGS = ['--no-allocation-site-pretenuring'];

/** Starts the authority on a new data folder, with the default log level and its output written to a file. */
export async function startAuthority(
  cpuProfDir: string | null,
  threads = 1,
  fill: (dataDir: string) => Promise<void> | void = newNetwork,
  checkout = ROOT,
  environment: Readonly<Record<string, string>> = {},
): Promise<AuthorityProcess> {
  let running: ChildProcess | null = null;
  const scratch = scratchFolder('mesh-na-bench-', { atExit: () => void running?.kill('SIGKILL') });
  const dataDir = join(scratch.path, 'data');
  const output = join(scratch.path, 'output.log');
  await fill(dataDir);
  const file = openSync(output, 'a');
  const profiling = cpuProfDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${cpuProfDir}`];
  const address = ['--host', '127.0.0.1', '--port', '0', '--threads', String(threads)];
  const serve = ['serve', '--data-dir', dataDir, ...address, '--json'];
  const child = spawn(
    process.execPath,
    [...NODE_FLAGS, ...profiling, 'dist/src/main.js', ...serve],
    // The caller's MESH_ variables must not change what is measured.
    {
      cwd: checkout,
      env: { PATH: process.env.PATH, ...ENVIRONMENT, ...environment },
      stdio: ['ignore', file, file],
    },
  );
  watchChild(child, 'the authority', () => readFileSync(output, 'utf8').slice(-2000));
  running = child;
  child.once('exit', scratch.remove);
  const announced = await announcement(child, output);
  const networkOf = (tier: 'standard' | 'privileged'): Network => ({
    audience: announced.na_public_key,
    operatorKeyId: `ops-${tier}`,
    operatorSeed: readKeyFile(join(dataDir, 'keys', `operator-${tier}.key`)).toString('base64'),
  });
  return {
    pid: child.pid ?? 0,
    port: announced.port,
    url: announced.url,
    dataDir,
    network: networkOf('standard'),
    privileged: networkOf('privileged'),
    kill: () => killChild(child),
    [Symbol.asyncDispose]: () => stopChild(child),
  };
}

/** The name of another checkout's authority in the results. */
export const OTHER = 'other checkout';

/** The authority of another checkout, on its own network; undefined if none is measured. */
export async function startOther(
  { against }: { readonly against: string | null },
  threads = 1,
): Promise<AuthorityProcess | undefined> {
  return against === null ? undefined : startAuthority(null, threads, newNetwork, against);
}

export function newNetwork(dataDir: string): void {
  initNetwork({
    dataDir,
    networkName: 'bench',
    networkVersion: 'v0.1',
    now: systemRuntime.now(),
    randomSeed: () => systemRuntime.randomBytes(32),
  });
}

interface Announcement {
  readonly url: string;
  readonly port: number;
  readonly na_public_key: string;
}

async function announcement(child: ChildProcess, output: string): Promise<Announcement> {
  const deadline = systemRuntime.elapsed() + START_MS;
  // The folder is removed with the child, so inspect the child first.
  while (!hasEnded(child) && systemRuntime.elapsed() < deadline) {
    const line = /^\{"url".*\}$/m.exec(readFileSync(output, 'utf8'));
    if (line !== null) return JSON.parse(line[0]) as Announcement;
    await sleep(50);
  }
  child.kill('SIGKILL');
  throw new Error('The authority did not start');
}

export async function startBare(work: BareWork = {}): Promise<BareProcess> {
  const path = fileURLToPath(new URL('bare-server.ts', import.meta.url));
  const child = fork(path, childOptions());
  watchChild(child, 'the bare server');
  child.send(work);
  const [{ port }] = (await once(child, 'message', {
    signal: AbortSignal.timeout(START_MS),
  })) as [{ port: number }];
  return { pid: child.pid ?? 0, port, [Symbol.asyncDispose]: () => stopChild(child) };
}

const FILE_SYSTEMS: { readonly [magic: number]: string } = {
  61267: 'ext4',
  16914836: 'tmpfs',
  2035054128: 'overlayfs',
  1481003842: 'xfs',
  2435016766: 'btrfs',
};

/** The file system of the data folders; on a file system in memory, commits cost no flush. */
export function dataFileSystem(): string {
  const { type } = statfsSync(tmpdir());
  return FILE_SYSTEMS[type] ?? `type 0x${type.toString(16)}`;
}
