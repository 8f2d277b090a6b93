/** Several instances of one network on one database, each in its own process. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Transform } from 'node:stream';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { migrateDatabase } from '../../src/store/postgresql/status.ts';
import {
  type ChildEnvironment,
  type ChildServer,
  NO_LIMITS,
  startChildServer,
} from './child-server.ts';
import { networkFolder } from './folders.ts';
import type { Databases } from './postgresql.ts';
import { get } from './requests.ts';
import { until } from './until.ts';

export interface Place {
  readonly role: string;
  readonly term: number;
  readonly ready: boolean;
}

export interface TestInstances extends AsyncDisposable {
  /** The address of the database. */
  readonly url: string;
  readonly folder: string;
  /** Starts another instance, by default in the same folder; the first one is active. */
  start(environment?: ChildEnvironment, dataDir?: string): Promise<ChildServer>;
  /** Where the active instance accepts calls from the others, as `host:port`. */
  linkOfActive(): Promise<string>;
  setLinkOfActive(address: string): Promise<void>;
}

/** `definition` contains SQL options for creating their database. */
export async function testInstances(cluster: Databases, definition = ''): Promise<TestInstances> {
  const folder = networkFolder('alpha');
  const url = await cluster.createDatabase(definition);
  await migrateDatabase(parseStoreAddress(url, {}));
  const database = new URL(url).pathname.slice(1);
  const started: ChildServer[] = [];
  return {
    url,
    folder: folder.path,
    async start(environment = {}, dataDir = folder.path) {
      const given = { ...NO_LIMITS, MESH_STORE: url, MESH_THREADS: '2', ...environment };
      const server = await startChildServer(dataDir, { environment: given });
      started.push(server);
      return server;
    },
    async linkOfActive() {
      const rows = await cluster.query(database, 'select link from mesh_na.writer_lease');
      return String(rows[0]?.link);
    },
    async setLinkOfActive(address) {
      await cluster.query(database, `update mesh_na.writer_lease set link = '${address}'`);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((server) => server[Symbol.asyncDispose]()));
      await folder[Symbol.asyncDispose]();
    },
  };
}

export interface CuttableProxy extends AsyncDisposable {
  readonly address: string;
  /** Holds back bytes in this direction; connections stay open. */
  cut(direction: Direction): void;
  /** Like `cut`, for the oldest connection and those that replace it. */
  cutOne(direction: Direction): void;
  /** Like `cut` in both directions, for one of the open connections, counted from the oldest. */
  cutOnly(index: number): void;
  /** Like `cut` in both directions, for all current and later connections, as if the machine had vanished. */
  silence(): void;
  /** Ends all connections; new ones pass. */
  heal(): void;
  /** Resolves when at least this many connections are open. */
  hasConnections(count: number): Promise<void>;
  /** From now on, each answer arrives this many milliseconds later, and after the previous one. */
  delay(milliseconds: number): void;
}

export type Direction = 'to the active instance' | 'from the active instance' | 'both';

/** A TCP proxy in front of `host:port`. */
export async function cuttableProxy(target: string): Promise<CuttableProxy> {
  const { hostname, port } = new URL(`tcp://${target}`);
  const pairs = new Set<readonly [inner: Socket, outer: Socket]>();
  let isCutting: Direction | null = null;
  let lateBy = 0;
  const server = createServer((inner) => {
    const outer = connect(Number(port), hostname);
    const pair = [inner, outer] as const;
    pairs.add(pair);
    inner.pipe(outer);
    outer.pipe(late()).pipe(inner);
    for (const [from, to] of [pair, [outer, inner] as const]) {
      from.on('error', () => undefined);
      from.once('close', () => {
        to.destroy();
        pairs.delete(pair);
      });
    }
    if (isCutting !== null) cutPair(pair, isCutting);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  function late(): Transform {
    return new Transform({
      transform(chunk, _encoding, done) {
        if (lateBy === 0) done(null, chunk);
        else setTimeout(done, lateBy, null, chunk);
      },
    });
  }

  function cutPair([inner, outer]: readonly [Socket, Socket], direction: Direction): void {
    if (direction !== 'from the active instance') inner.unpipe().pause();
    if (direction !== 'to the active instance') outer.unpipe().pause();
  }

  function end(): void {
    isCutting = null;
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  }

  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut(direction) {
      for (const pair of pairs) cutPair(pair, direction);
    },
    cutOne(direction) {
      isCutting = direction;
      for (const pair of [...pairs].slice(0, 1)) cutPair(pair, direction);
    },
    cutOnly(index) {
      for (const pair of [...pairs].slice(index, index + 1)) cutPair(pair, 'both');
    },
    silence() {
      isCutting = 'both';
      for (const pair of pairs) cutPair(pair, 'both');
    },
    heal: end,
    hasConnections: (count) => until(async () => pairs.size >= count),
    delay(milliseconds) {
      lateBy = milliseconds;
    },
    async [Symbol.asyncDispose]() {
      end();
      server.close();
    },
  };
}

/** The role and readiness that an instance reports. */
export async function placeOf({ na }: Pick<ChildServer, 'na'>): Promise<Place> {
  const { status, body } = await get(na, '/readyz');
  const { role, term } = status === 200 ? body : body.error.details;
  return { role, term, ready: status === 200 };
}

/** Whether it has taken over, and answers. */
export async function isActive(server: ChildServer): Promise<boolean> {
  const { role, ready } = await placeOf(server);
  return role === 'active' && ready;
}
