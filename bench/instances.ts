/** Several instances of one network on one database, each in its own process. The run has its own database server. */
import { symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemRuntime } from '../src/base/runtime.ts';
import { startCluster, type TestCluster } from '../test/support/postgresql.ts';
import { migratedDatabase } from '../test/support/postgresql-store.ts';
import { scratchFolder } from '../test/support/scratch.ts';
import { type AuthorityProcess, newNetwork, startAuthority } from './servers.ts';

/** Settings of a typical server, except for memory; servers of tests have very little. */
const SETTINGS = {
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  autovacuum: 'on',
};

/**
 * Other work of a run, such as signing, may occupy both cores for seconds; the active instance must keep its lease meanwhile.
 */
const LEASE_MS = '5000';

/** The time limit for reading a state of a million nodes. */
const READY_MS = 120_000;
const POLL_MS = 20;

export interface Instances extends AsyncDisposable {
  readonly cluster: TestCluster;
  /** The name of the database in the cluster. */
  readonly database: string;
  readonly url: string;
  /** Starts another instance, which ends with the run; the first one is active. */
  start(
    threads: number,
    cpuProf?: string | null,
    environment?: Readonly<Record<string, string>>,
  ): Promise<AuthorityProcess>;
}

/** `fill` creates the folder of keys and, if needed, the state in the database at the given address. */
export async function startInstances(
  fill: (dataDir: string, url: string) => Promise<void> | void = newNetwork,
): Promise<Instances> {
  const cluster = await startCluster({ settings: SETTINGS, below: tmpdir() });
  const scratch = scratchFolder('mesh-na-bench-');
  const keys = join(scratch.path, 'keys');
  const started: AuthorityProcess[] = [];
  async function end(): Promise<void> {
    await Promise.all(started.map((instance) => instance[Symbol.asyncDispose]()));
    await cluster[Symbol.asyncDispose]();
    scratch.remove();
  }
  try {
    const url = await migratedDatabase(cluster);
    await fill(keys, url);
    return {
      cluster,
      database: new URL(url).pathname.slice(1),
      url,
      async start(threads, cpuProf = null, environment = {}) {
        const link = (dataDir: string) => symlinkSync(keys, dataDir);
        const settings = {
          MESH_STORE: url,
          MESH_LINK: '127.0.0.1:0',
          MESH_LEASE_MS: LEASE_MS,
          ...environment,
        };
        const instance = await startAuthority(cpuProf, threads, link, undefined, settings);
        started.push(instance);
        return instance;
      },
      [Symbol.asyncDispose]: end,
    };
  } catch (cause) {
    await end();
    throw cause;
  }
}

/** The role and readiness that an instance reports. */
export interface Place {
  readonly isReady: boolean;
  readonly role: string;
  /** Null while the instance keeps no state ready. */
  readonly lag: number | null;
}

export async function placeOf({ url }: AuthorityProcess): Promise<Place> {
  const response = await fetch(`${url}/readyz`);
  const answer = (await response.json()) as { error?: { details: PlaceMembers } } & PlaceMembers;
  const { role, lag_revisions: lag } = answer.error?.details ?? answer;
  return { isReady: response.status === 200, role, lag };
}

interface PlaceMembers {
  readonly role: string;
  readonly lag_revisions: number | null;
}

/** Resolves when the instance answers as a standby and keeps the state ready. */
export function isFollowing(instance: AuthorityProcess): Promise<void> {
  return until(async () => {
    const { isReady, role, lag } = await placeOf(instance);
    return isReady && role === 'standby' && lag !== null;
  });
}

/** Repeats the check until it is true. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = systemRuntime.elapsed() + READY_MS;
  while (!(await holds())) {
    if (systemRuntime.elapsed() > deadline) throw new Error('An instance did not become ready');
    await sleep(POLL_MS);
  }
}
