/** The servers under test, each in its own process: authorities as shipped, and the bare server. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { readGenesisFile } from '../src/cli/kernel/files.ts';
import { FILES } from '../src/server/config/data-folder.ts';
import { networkOf } from '../src/store/network-identity.ts';
import { openPostgresqlStore } from '../src/store/postgresql/store.ts';
import type { Store } from '../src/store/store.ts';
import { startCluster, type TestCluster } from '../test/support/postgresql.ts';
import { migratedDatabase, storeOptions } from '../test/support/postgresql-store.ts';
import { spawnNode } from '../test/support/processes.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import type { BareWork } from './bare-server.ts';
import type { Settings } from './contest.ts';
import type { Network } from './network.ts';
import type { Target } from './rounds.ts';
import { newNetwork } from './seed.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** A large network on a busy machine starts slowly. */
const START_MS = 120_000;
const STOP_MS = 15_000;
const POLL_MS = 20;

/** Turns off limits that would refuse the run itself. Limits on failures stay on, because they are part of the work. */
const ENVIRONMENT = {
  MESH_RATE_LIMIT_ADMIN: 'off',
  MESH_RATE_LIMIT_JOIN: 'off',
  MESH_RATE_LIMIT_VERIFY: 'off',
};

/** The same flags as in `npm start`. */
const NODE_FLAGS = ['--no-allocation-site-pretenuring'];

export interface AuthorityProcess extends Target, AsyncDisposable {
  readonly url: string;
  readonly network: Network;
  /** The same for the privileged operator. */
  readonly privileged: Network;
  readonly dataDir: string;
  /** Ends the process as if its machine had failed. */
  kill(): Promise<void>;
}

type Serving = Pick<Settings, 'threads' | 'cpuProf'>;

interface Start {
  readonly fill?: (dataDir: string) => unknown;
  /** The checkout whose build is started. */
  readonly checkout?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts the authority on a new data folder, with the default log level and its output written to a file. */
export async function startAuthority(
  { threads, cpuProf }: Serving,
  { fill = newNetwork, checkout = ROOT, environment = {} }: Start = {},
): Promise<AuthorityProcess> {
  const scratch = scratchFolder('mesh-na-bench-');
  const dataDir = join(scratch.path, 'data');
  const output = join(scratch.path, 'output.log');
  await fill(dataDir);
  const file = openSync(output, 'a');
  const profiling = cpuProf === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${cpuProf}`];
  const address = ['--host', '127.0.0.1', '--port', '0', '--threads', String(threads)];
  const serve = ['serve', '--data-dir', dataDir, ...address, '--json'];
  const child = spawnNode([...NODE_FLAGS, ...profiling, 'dist/src/main.js', ...serve], {
    cwd: checkout,
    // The caller's MESH_ variables must not change what is measured.
    env: { PATH: process.env.PATH, ...ENVIRONMENT, ...environment },
    stdio: ['ignore', file, file],
  });
  const said = () => readFileSync(output, 'utf8');
  const { hasEnded, end } = own(child, 'the authority', () => said().slice(-2000));
  child.once('exit', scratch.remove);
  // The folder is removed with the child, so inspect the child first.
  const announced = () => (hasEnded() ? '' : (/^\{"url".*\}$/m.exec(said())?.[0] ?? null));
  const {
    url,
    port,
    na_public_key: audience,
  } = JSON.parse((await until(announced)) || '{}') as Announcement;
  const of = (tier: 'standard' | 'privileged'): Network => {
    const seed = readKeyFile(join(dataDir, 'keys', `operator-${tier}.key`));
    return { audience, operatorKeyId: `ops-${tier}`, operatorSeed: seed.toString('base64') };
  };
  return {
    pid: child.pid ?? 0,
    port,
    url,
    dataDir,
    network: of('standard'),
    privileged: of('privileged'),
    kill: () => end('SIGKILL'),
    [Symbol.asyncDispose]: end,
  };
}

interface Announcement {
  readonly url: string;
  readonly port: number;
  readonly na_public_key: string;
}

/** The name of another checkout's authority in the results. */
export const OTHER = 'other checkout';

/** The authority of another checkout, on its own network; undefined if none is measured. */
export async function startOther({ against, threads }: Settings) {
  return against === undefined ? undefined : startAuthority({ threads }, { checkout: against });
}

export async function startBare(work: BareWork = {}): Promise<Target & AsyncDisposable> {
  const path = fileURLToPath(new URL('bare-server.ts', import.meta.url));
  const child = spawnNode(['--import', 'tsx', path], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const { end } = own(child, 'the bare server');
  child.send(work);
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { pid: child.pid ?? 0, port, [Symbol.asyncDispose]: end };
}

/** Reports a child that ends unexpectedly: otherwise only a refused connection would show it. */
function own(child: ChildProcess, what: string, lastWords = () => '') {
  let isExpected = false;
  const ended = once(child, 'exit');
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  child.once('exit', (code, signal) => {
    if (isExpected && !code) return;
    const how = signal ?? `exit code ${code}`;
    process.stderr.write(`bench: ${what} ended by ${how}\n${lastWords()}`);
  });
  async function end(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    isExpected = true;
    child.kill(signal);
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(impatience);
  }
  return { hasEnded, end };
}

/** Looks again until the result is not null. */
export async function until<T>(look: () => Promise<T | null> | T | null): Promise<T> {
  const deadline = systemRuntime.elapsed() + START_MS;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (systemRuntime.elapsed() > deadline) throw new Error('A server did not become ready');
    await systemRuntime.pause(POLL_MS);
  }
}

/** Settings of a typical server, except for memory; servers of tests have very little. */
const DATABASE_SETTINGS = {
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  autovacuum: 'on',
};

/** A PostgreSQL server of the run, on the disk of the data folders, with the address of a database with our tables. */
export async function startDatabase(): Promise<{ cluster: TestCluster; url: string }> {
  const cluster = await startCluster({ settings: DATABASE_SETTINGS, below: tmpdir() });
  return { cluster, url: await migratedDatabase(cluster) };
}

/** Opens the store of a network in a database; `dataDir` contains its genesis block, and is marked as in use. */
export async function storeIn(url: string, dataDir: string): Promise<Store> {
  const genesis = await readGenesisFile(join(dataDir, FILES.genesis));
  return openPostgresqlStore(storeOptions(url, { network: networkOf(genesis), dataDir }));
}

/** Several instances of one network on one database. */
export interface Instances extends AsyncDisposable {
  query(statement: string): Promise<Record<string, unknown>[]>;
  /** Starts another instance, which ends with the run; the first one is active. */
  start(environment?: Readonly<Record<string, string>>): Promise<AuthorityProcess>;
}

/**
 * Other work of a run, such as signing, may occupy both cores for seconds; the active instance must keep its lease meanwhile.
 */
const LEASE_MS = '5000';

/** `fill` creates the folder of keys and, if needed, the state in the database at the given address. */
export async function startInstances(
  serving: Serving,
  fill: (dataDir: string, url: string) => unknown = newNetwork,
): Promise<Instances> {
  const { cluster, url } = await startDatabase();
  const scratch = scratchFolder('mesh-na-bench-');
  const keys = join(scratch.path, 'keys');
  await fill(keys, url);
  const place = { MESH_STORE: url, MESH_LINK: '127.0.0.1:0', MESH_LEASE_MS: LEASE_MS };
  const started: AuthorityProcess[] = [];
  return {
    query: (statement) => cluster.query(new URL(url).pathname.slice(1), statement),
    async start(environment = {}) {
      const instance = await startAuthority(
        { ...serving, threads: Math.max(2, serving.threads) },
        {
          fill: (dataDir) => symlinkSync(keys, dataDir),
          environment: { ...place, ...environment },
        },
      );
      started.push(instance);
      return instance;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((instance) => instance[Symbol.asyncDispose]()));
      await cluster[Symbol.asyncDispose]();
      scratch.remove();
    },
  };
}

/** Resolves when the instance is ready in this role; a standby also keeps the state ready. */
export async function isReadyAs(role: string, { url }: AuthorityProcess): Promise<void> {
  await until(async () => {
    const response = await fetch(`${url}/readyz`);
    const answer = (await response.json()) as Readiness;
    const isReady = response.ok && answer.role === role;
    return isReady && (role !== 'standby' || answer.lag_revisions !== null) ? true : null;
  });
}

interface Readiness {
  readonly role: string;
  readonly lag_revisions: number | null;
}
