import assert from 'node:assert/strict';
import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { serialize } from 'node:v8';
import pg from 'pg';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { readAuditLog } from '../../src/store/postgresql/source.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import type { AuditEntry, Store, Unit } from '../../src/store/store.ts';
import { storeOptions } from '../support/postgresql-store.ts';
import { spawnNode } from '../support/processes.ts';
import { LOADER, modulePath } from '../support/project.ts';
import { sharedCluster } from '../support/shared-cluster.ts';
import { type OpenedStore, testStore } from './conformance.ts';

const cluster = await sharedCluster();

testStore({ name: 'PostgreSQL', open });

interface PostgresqlPlace extends OpenedStore {
  readonly url: string;
}

async function open(): Promise<PostgresqlPlace> {
  const url = await cluster.createStore();
  let holder: Store | null = null;

  async function openHere(): Promise<Store> {
    const store = await openPostgresqlStore(storeOptions(url));
    const release = (how: 'close' | 'abandon') => async () => {
      holder = null;
      await store[how]();
    };
    holder = { ...store, close: release('close'), abandon: release('abandon') };
    return holder;
  }

  return {
    url,
    store: await openHere(),
    reopen: openHere,
    async dieAfter(units) {
      await commitAndDie(url, units);
      await withClient(url, letLeaseRunOut);
    },
    async auditEntries() {
      const entries: AuditEntry[] = [];
      for await (const entry of readAuditLog(parseStoreAddress(url, {}))) entries.push(entry);
      return entries;
    },
    async [Symbol.asyncDispose]() {
      await holder?.close();
    },
  };
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Has the same effect as waiting after a holder has died. */
async function letLeaseRunOut(client: pg.Client): Promise<void> {
  await client.query(`update mesh_na.writer_lease set expires_at = clock_timestamp()`);
}

/** A process that opens the store, commits the units one by one and is killed. */
async function commitAndDie(url: string, units: readonly Unit[]): Promise<void> {
  const script = `
    import { setTimeout } from 'node:timers/promises';
    import { deserialize } from 'node:v8';
    import { storeOptions } from '${pathToFileURL(modulePath('test/support/postgresql-store.ts'))}';
    import { openPostgresqlStore } from '${pathToFileURL(modulePath('src/store/postgresql/store.ts'))}';
    const store = await openPostgresqlStore(storeOptions(process.argv[1]));
    for (const unit of deserialize(Buffer.from(process.argv[2], 'base64'))) {
      await store.commit(unit).catch(() => undefined);
    }
    process.stdout.write('done');
    await setTimeout(60_000);
  `;
  const args = [...LOADER, '--input-type=module', '--eval', script];
  const child = spawnNode([...args, url, serialize(units).toString('base64')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  assert.ok(child.stdout !== null);
  const [said] = await once(child.stdout, 'data');
  assert.equal(String(said), 'done');
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
