/** Several instances of one network on one database, each a process. */
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { migrateDatabase } from '../../src/store/postgresql/status.ts';
import {
  type ChildEnvironment,
  type ChildServer,
  NO_LIMITS,
  startChildServer,
} from './child-server.ts';
import { networkFolder } from './folders.ts';
import type { TestCluster } from './postgresql.ts';
import { get } from './requests.ts';

export interface Place {
  readonly role: string;
  readonly epoch: number;
  readonly ready: boolean;
}

export interface TestInstances extends AsyncDisposable {
  /** The address of the database. */
  readonly url: string;
  readonly folder: string;
  /** Starts one more; the first is the one that writes. */
  start(environment?: ChildEnvironment): Promise<ChildServer>;
}

export async function testInstances(cluster: TestCluster): Promise<TestInstances> {
  const folder = networkFolder('alpha');
  const url = await cluster.createDatabase();
  await migrateDatabase(parseStoreAddress(url, {}));
  const started: ChildServer[] = [];
  return {
    url,
    folder: folder.path,
    async start(environment = {}) {
      const given = { ...NO_LIMITS, MESH_STORE: url, MESH_THREADS: '2', ...environment };
      const server = await startChildServer(folder.path, { environment: given });
      started.push(server);
      return server;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((server) => server[Symbol.asyncDispose]()));
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** What an instance says of itself. */
export async function placeOf({ na }: ChildServer): Promise<Place> {
  const { status, body } = await get(na, '/readyz');
  const { role, epoch } = status === 200 ? body : body.error.details;
  return { role, epoch, ready: status === 200 };
}

/** Asks again until it holds. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}
