/**
 * The deployment of the failure table on a single machine: three instances that restart when they end, the HAProxy of
 * docs/deploy in front of them, and two PostgreSQL servers behind them, each behind a proxy.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { migrateDatabase } from '../../src/store/postgresql/status.ts';
import type { TestAuthority } from '../support/authority.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from '../support/child-server.ts';
import { networkFolder } from '../support/folders.ts';
import { type CuttableProxy, cuttableProxy, type Place, placeOf } from '../support/instances.ts';
import { ownPort } from '../support/own-port.ts';
import { SETTABLE_CLOCK, settingClock } from '../support/postgresql.ts';
import { type ServerPair, startPair } from '../support/postgresql-pair.ts';
import { findProgram } from '../support/programs.ts';
import { PROJECT } from '../support/project.ts';
import { get, outcome } from '../support/requests.ts';

const DATABASE = 'chaos';
/** Rejects every change, including those of the lease, as PostgreSQL does while its disk is full. */
const FULL_DISK = `
  create function public.refuse() returns trigger language plpgsql as $$ begin
    raise exception 'could not extend file: No space left on device' using errcode = 'disk_full';
  end $$;
  do $$ declare name text; begin
    for name in select tablename from pg_tables where schemaname = 'mesh_na' loop
      execute format('create trigger full_disk before insert or update or delete on mesh_na.%I execute function public.refuse()', name);
    end loop;
  end $$;
`;
const ROOM_AGAIN = 'drop function public.refuse cascade';
/** It locks all tables, and so may instances, in another order. Returns false; rejects with any other cause. */
function isDeadlock(cause: unknown): false {
  if ((cause as { code?: string }).code === '40P01') return false;
  throw cause;
}

/** A supervisor waits this long before it restarts an instance. */
const RESTART_MS = 1000;
const LOOK_MS = 50;
const PATIENCE_MS = 60_000;
/** How much of the log to show if a deployment does not recover. */
const LOG_LINES = 60;

/** One of the instances; each start is a new process. */
export interface Instance {
  /** For requests to this instance only; it may be down. */
  readonly na: TestAuthority;
  /** Null while it is down. */
  server(): ChildServer | null;
}

export interface Deployment extends AsyncDisposable {
  readonly instances: readonly Instance[];
  /** For requests through the balancer. */
  readonly na: TestAuthority;
  readonly servers: ServerPair;
  /** In front of each server of the pair, in the order of its ports. */
  readonly proxies: readonly CuttableProxy[];
  /** The same, but used only by the last instance. */
  readonly proxiesOfLast: readonly CuttableProxy[];
  /** Sets the database's clock this many seconds ahead of the machine's. */
  setClockOfDatabase(seconds: number): Promise<void>;
  /** Makes the database reject every change for lack of disk space, or accept changes again. */
  setDiskFull(isFull: boolean): Promise<void>;
  /** Instances that start from now on have no head file to learn the state's position from. */
  removeHead(): void;
  active(): Promise<Instance>;
  /** Resolves when an instance refuses the older state, and none is ready. */
  isRefused(): Promise<void>;
  /** Resolves when one instance writes and all of them answer. */
  isWhole(): Promise<void>;
  linkOfActive(): Promise<string>;
  setLinkOfActive(address: string): Promise<void>;
}

export async function deploy(leaseMs: number): Promise<Deployment> {
  const folder = networkFolder('alpha');
  const servers = await startPair();
  await servers.primary().query('postgres', `create database ${DATABASE}`);
  await servers.primary().query(DATABASE, SETTABLE_CLOCK);
  const [proxies, proxiesOfLast] = await Promise.all([proxiesOf(servers), proxiesOf(servers)]);
  const url = urlOf(servers, proxies);
  const log = join(folder.path, 'log');
  await migrateDatabase(parseStoreAddress(url, {}));
  const environment = {
    ...NO_LIMITS,
    MESH_THREADS: '1',
    MESH_LINK: '127.0.0.1:0',
    MESH_LEASE_MS: String(leaseMs),
    // Longer than another instance needs to start writing on a machine that is running everything at once.
    MESH_HOLD_MS: '10000',
    // The balancer notices within 1.2 seconds that an instance is about to stop: the interval and timeout of its
    // checks.
    MESH_DRAIN_SECONDS: '3',
    MESH_PROXY_HOPS: '1',
    MESH_LOG_FILE: log,
  };
  const head: { MESH_HEAD_FILE?: string } = { MESH_HEAD_FILE: join(folder.path, 'head') };
  let isOver = false;
  const start = (behind: readonly CuttableProxy[]) => {
    const own = { ...environment, MESH_STORE: urlOf(servers, behind) };
    return supervised(
      folder.path,
      () => ({ ...own, ...head }),
      () => isOver,
    );
  };
  const first = await start(proxies);
  const instances = [first, ...(await Promise.all([start(proxies), start(proxiesOfLast)]))];
  const balancer = await startBalancer(instances.map(({ na }) => new URL(na.url).host));

  async function active(): Promise<Instance> {
    return eventually('no instance writes', async () => {
      for (const instance of instances) {
        if ((await placeIfUp(instance))?.role === 'active') return instance;
      }
      return null;
    });
  }

  /** Like `eventually`, but a failure includes the end of the log. */
  async function comes<T>(problem: string, attempt: () => Promise<T | null>): Promise<T> {
    return eventually(problem, attempt).catch((cause) => {
      throw new Error(`${cause.message}; the log of all instances ends with\n${endOf(log)}`);
    });
  }

  return {
    instances,
    na: { ...first.na, url: balancer.url },
    servers,
    proxies,
    proxiesOfLast,
    async setClockOfDatabase(seconds) {
      await servers.primary().query(DATABASE, settingClock(seconds));
    },
    async setDiskFull(isFull) {
      const statement = isFull ? FULL_DISK : ROOM_AGAIN;
      for (let isDone = false; !isDone; ) {
        isDone = await servers
          .primary()
          .query(DATABASE, statement)
          .then(() => true, isDeadlock);
      }
    },
    removeHead() {
      delete head.MESH_HEAD_FILE;
    },
    active,
    async isRefused() {
      await comes('no instance has noticed that the state is older', async () => {
        const said = await Promise.all(
          instances.map(({ na }) => get(na, '/readyz').catch(() => null)),
        );
        const refuses = said.some((one) => one && outcome(one) === '503 restore_pending');
        return (refuses && said.every((one) => one?.status !== 200)) || null;
      });
    },
    async isWhole() {
      await comes('the deployment has not healed', async () => {
        const places = await Promise.all(instances.map(placeIfUp));
        const actives = places.filter((place) => place?.role === 'active');
        return (places.every((place) => place?.ready) && actives.length === 1) || null;
      });
    },
    async linkOfActive() {
      const rows = await servers.primary().query(DATABASE, 'select link from mesh_na.writer_lease');
      return String(rows[0]?.link);
    },
    async setLinkOfActive(address) {
      const statement = `update mesh_na.writer_lease set link = '${address}'`;
      await servers.primary().query(DATABASE, statement);
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      balancer.stop();
      await Promise.all(instances.map(async (one) => one.server()?.end('SIGKILL')));
      const all = [...proxies, ...proxiesOfLast];
      await Promise.all(all.map((proxy) => proxy[Symbol.asyncDispose]()));
      await servers[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** The last lines that are not about requests. */
function endOf(log: string): string {
  const lines = readFileSync(log, 'utf8').split('\n');
  return lines
    .filter((line) => !/ mesh\.(?:access|audit) /.test(line))
    .slice(-LOG_LINES)
    .join('\n');
}

function proxiesOf({ ports }: ServerPair): Promise<CuttableProxy[]> {
  return Promise.all(ports.map((port) => cuttableProxy(`127.0.0.1:${port}`)));
}

function urlOf(servers: ServerPair, proxies: readonly CuttableProxy[]): string {
  const hosts = proxies.map(({ address }) => address).join(',');
  const password = encodeURIComponent(servers.primary().password);
  return `postgresql://postgres:${password}@${hosts}/${DATABASE}`;
}

/** Resolves after the first start. */
async function supervised(
  folder: string,
  environment: () => Readonly<Record<string, string>>,
  isOver: () => boolean,
): Promise<Instance> {
  const args = ['--port', String(await ownPort())];
  const first = await startChildServer(folder, { environment: environment(), args });
  let current: ChildServer | null = first;

  async function supervise(server: ChildServer): Promise<void> {
    await server.ended;
    current = null;
    while (!isOver()) {
      await delay(RESTART_MS);
      // An instance refuses to start without its database.
      const next = await startChildServer(folder, { environment: environment(), args }).catch(
        () => null,
      );
      if (next === null) continue;
      current = next;
      void supervise(next);
      if (isOver()) await next.end('SIGKILL');
      return;
    }
  }

  void supervise(first);
  return { na: first.na, server: () => current };
}

async function placeIfUp(instance: Instance): Promise<Place | null> {
  const server = instance.server();
  return server === null ? null : placeOf(server).catch(() => null);
}

/** Resolves with the first result that is not null; rejects with `problem` if none comes. */
export async function eventually<T>(problem: string, attempt: () => Promise<T | null>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await attempt();
    if (found !== null) return found;
    assert.ok(performance.now() < deadline, problem);
    await delay(LOOK_MS);
  }
}

interface Balancer {
  readonly url: string;
  stop(): void;
}

/** The sample in docs/deploy, with its addresses replaced. */
async function startBalancer(hosts: readonly string[]): Promise<Balancer> {
  const program = findProgram(['haproxy'], process.env);
  if (program === null) throw new Error('There is no HAProxy on this machine');
  const port = await ownPort();
  const sample = readFileSync(new URL('docs/deploy/haproxy.cfg', PROJECT), 'utf8');
  const placed = hosts.reduce(
    (text, host, index) => text.replaceAll(`10.0.0.${index + 1}:8443`, host),
    sample.replace('bind :8080', `bind 127.0.0.1:${port}`),
  );
  const folder = mkdtempSync(join(tmpdir(), 'mesh-chaos-'));
  const file = join(folder, 'haproxy.conf');
  writeFileSync(file, placed);
  const child = spawn(program, ['-q', '-db', '-f', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const url = `http://127.0.0.1:${port}`;
  await untilServed(child, url);
  return {
    url,
    stop() {
      process.off('exit', kill);
      kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function untilServed(child: ChildProcess, url: string): Promise<void> {
  await eventually('the balancer does not pass requests on', async () => {
    assert.equal(child.exitCode, null, 'the balancer has ended');
    const asked = await get({ url }, '/readyz').catch(() => null);
    return asked?.status === 200 || null;
  });
}
