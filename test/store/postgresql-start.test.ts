/** Unusable databases are refused with one sentence, and nothing is written to them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { NetworkIdentity } from '../../src/store/network-identity.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import { followDatabaseClock } from '../../src/store/postgresql/clocks.ts';
import { connectToPrimary, disconnect } from '../../src/store/postgresql/connect.ts';
import { SCHEMA_VERSION } from '../../src/store/postgresql/schema.ts';
import { migrateDatabase, readStatus } from '../../src/store/postgresql/status.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import { markInUse } from '../../src/store/usage-mark.ts';
import { ownFolder } from '../support/folders.ts';
import { keptLog } from '../support/kept-log.ts';
import { startCluster } from '../support/postgresql.ts';
import { migratedDatabase, storeOptions } from '../support/postgresql-store.ts';

const cluster = await startCluster();
const folder = ownFolder();
after(() => cluster[Symbol.asyncDispose]());

const ALPHA: NetworkIdentity = {
  network_name: 'alpha',
  root_public_key: 'root of alpha',
  authority_public_key: 'authority of alpha',
};
const PLACE = `127.0.0.1:${cluster.port}`;

/** The sentence with which the database is refused. */
async function refusal(url: string, given: Parameters<typeof storeOptions>[1] = {}) {
  let sentence = '';
  await assert.rejects(openPostgresqlStore(storeOptions(url, given)), (error: Error) => {
    sentence = error.message;
    return true;
  });
  assert.match(sentence, /^\S[^\n\r]{10,400}[^\s.]$/);
  assert.ok(!sentence.includes(cluster.password) && !sentence.includes('%40'), 'no password');
  return sentence;
}

/** The number of the lease, which grows with every holder, even one whose start failed. */
async function holders(url: string): Promise<number | undefined> {
  return (await readStatus(parseStoreAddress(url, {}))).contents?.lease.term;
}

suite('a database is refused', { concurrency: false }, () => {
  test('if nothing listens at its address', async () => {
    const url = 'postgresql://mesh:secret@127.0.0.1:1/mesh';
    const sentence = await refusal(url);
    assert.equal(sentence, 'The database at 127.0.0.1:1/mesh cannot be reached (ECONNREFUSED)');
  });

  test('if it does not exist', async () => {
    assert.equal(
      await refusal(cluster.url('nothing')),
      `The database at ${PLACE}/nothing refuses user postgres: it does not exist; createdb makes it`,
    );
  });

  test('if the password is wrong, or missing', async () => {
    const url = await migratedDatabase(cluster);
    const { pathname } = new URL(url);
    const places = 'the URL, PGPASSWORD or the file that PGPASSFILE names';
    const wrong = `postgresql://postgres:wrong@${PLACE}${pathname}`;
    assert.equal(
      await refusal(wrong),
      `The database at ${PLACE}${pathname} refuses user postgres: the password is wrong; it is taken from ${places}`,
    );
    const without = `postgresql://postgres@${PLACE}${pathname}`;
    assert.equal(
      await refusal(without),
      `The database at ${PLACE}${pathname} refuses user postgres: it requires a password; set it with ${places}`,
    );
    assert.equal(await holders(url), 0);
  });

  test('if it has no tables, with the command that creates them', async () => {
    const url = await cluster.createDatabase();
    assert.match(
      await refusal(url),
      /^The database at \S+ has no tables of an authority; mesh-na store migrate, with the same --store, makes them$/,
    );
    assert.equal((await readStatus(parseStoreAddress(url, {}))).schemaVersion, 0);
  });

  test('if its tables have another version', async () => {
    const url = await migratedDatabase(cluster);
    const database = new URL(url).pathname.slice(1);
    await cluster.query(database, `select mesh_na.put_meta('schema', '\\x63')`);
    assert.match(
      await refusal(url),
      new RegExp(
        `^The database at \\S+ has schema version 99; this program reads version ${SCHEMA_VERSION}: start the program that wrote it$`,
      ),
    );
    await assert.rejects(migrateDatabase(parseStoreAddress(url, {})), /has schema version 99; /);
    assert.equal((await readStatus(parseStoreAddress(url, {}))).schemaVersion, 99);
  });

  test('if the row of its lease is gone', async () => {
    const url = await migratedDatabase(cluster);
    const database = new URL(url).pathname.slice(1);
    await cluster.query(database, 'delete from mesh_na.writer_lease');
    const sentence =
      'The stored state is damaged: the row of table writer_lease is missing; restore it from a backup';
    assert.equal(await refusal(url), sentence);
    await assert.rejects(readStatus(parseStoreAddress(url, {})), { message: sentence });
  });

  test('if it belongs to another network', async () => {
    const url = await migratedDatabase(cluster);
    const dataDir = mkdtempSync(join(folder, 'alpha-'));
    await (await openPostgresqlStore(storeOptions(url, { network: ALPHA, dataDir }))).close();
    const beta = { ...ALPHA, network_name: 'beta' };
    assert.equal(
      await refusal(url, { network: beta, dataDir }),
      'The state in the database belongs to the network "alpha", not to "beta"',
    );
    const otherKey = { ...ALPHA, root_public_key: 'another' };
    assert.match(
      await refusal(url, { network: otherKey, dataDir }),
      /whose root key is root of alpha$/,
    );
    assert.equal(await holders(url), 1);
  });

  test('if the keys have issued certificates before, and it is empty', async () => {
    const url = await migratedDatabase(cluster);
    const dataDir = mkdtempSync(join(folder, 'used-'));
    markInUse(dataDir, ALPHA);
    assert.equal(
      await refusal(url, { network: ALPHA, dataDir }),
      'The data directory was in use by the network "alpha", but the database holds no state; name the store that does by --store, or restore it from a backup',
    );
    assert.equal(await holders(url), 0);
  });

  test('if it is read-only', async () => {
    const url = await migratedDatabase(cluster);
    const database = new URL(url).pathname.slice(1);
    await cluster.query(
      database,
      `alter database ${database} set default_transaction_read_only = on`,
    );
    assert.equal(await refusal(url), `The database at ${PLACE}/${database} is read-only`);
  });

  test('if it runs without fsync', async () => {
    const url = await migratedDatabase(cluster);
    await cluster.stop('SIGINT');
    await cluster.start({ fsync: 'off' });
    assert.match(await refusal(url), /runs with fsync=off: acknowledged changes may be lost/);
    await cluster.stop('SIGINT');
    await cluster.start();
  });

  test('if it is a standby; of a list, the server that is not one is used', async () => {
    await using standby = await startCluster();
    await standby.stop('SIGINT');
    standby.setStandby(true);
    await standby.start();
    assert.equal(
      await refusal(standby.url('postgres')),
      `The database at 127.0.0.1:${standby.port}/postgres is a standby, which cannot be written to`,
    );
    const url = await migratedDatabase(cluster);
    const both = url.replace('@127.0.0.1:', `@127.0.0.1:1,127.0.0.1:${standby.port},127.0.0.1:`);
    const store = await openPostgresqlStore(storeOptions(both));
    assert.equal(store.health(), null);
    await store.close();
  });
});

test('a server that accepts connections and says nothing costs a moment once, wherever it is in the list', async () => {
  const url = await migratedDatabase(cluster);
  const asked: string[] = [];
  await using silent = await listening(() => asked.push('silent'));
  await using real = await listening((socket) => {
    asked.push('real');
    const outer = connect(cluster.port, '127.0.0.1').on('error', () => undefined);
    outer.on('close', () => socket.destroy());
    socket.pipe(outer).pipe(socket);
  });
  const hosts = [silent, real].map(({ port }) => `127.0.0.1:${port}`);
  for (const [list, first] of [
    [hosts, 'silent'],
    [hosts.toReversed(), 'real'],
  ] as const) {
    const address = parseStoreAddress(url.replace(/@[^/]+/, `@${list.join(',')}`), {});
    for (const expected of [first, 'real', 'real']) {
      asked.length = 0;
      const began = performance.now();
      const { client, shown } = await connectToPrimary(address);
      const isWithinHeadStart = performance.now() - began < 200;
      assert.match(shown, new RegExp(`:${real.port}/`));
      assert.equal(asked[0], expected, `${list}`);
      await disconnect(client);
      if (isWithinHeadStart) assert.deepEqual(asked, ['real'], 'no other is asked then');
    }
  }
  await silent.allClosed();
});

test('servers that do not answer are given up after a third of the time for a statement, and all are named', async () => {
  await using silent = await listening(() => undefined);
  const place = `127.0.0.1:${silent.port}`;
  const address = parseStoreAddress(`postgresql://mesh@${place},127.0.0.1:1/mesh`, {});
  await assert.rejects(connectToPrimary(address, { timeout: 6000 }), {
    message: `The database at ${place}/mesh cannot be reached (no answer within 2.0 s); The database at 127.0.0.1:1/mesh cannot be reached (ECONNREFUSED)`,
  });
  await silent.allClosed();
});

/**
 * Accepts connections; unless `accepted` does more, it looks like a frozen machine, whose kernel still accepts them.
 */
async function listening(accepted: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket
      .on('error', () => undefined)
      .on('close', () => sockets.delete(socket))
      .resume();
    accepted(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    /** Resolves when no one is connected any more. */
    async allClosed() {
      while (sockets.size > 0) await pause(20);
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test('a password comes from the URL, the variable, or the file of passwords', async () => {
  const url = await migratedDatabase(cluster);
  const { pathname } = new URL(url);
  const without = `postgresql://postgres@${PLACE}${pathname}`;
  const byVariable = parseStoreAddress(without, { PGPASSWORD: cluster.password });
  assert.equal((await readStatus(byVariable)).place, `${PLACE}${pathname}`);
  const file = join(folder, 'pgpass');
  writeFileSync(file, `127.0.0.1:${cluster.port}:*:postgres:${cluster.password}\n`);
  chmodSync(file, 0o600);
  process.env.PGPASSFILE = file;
  try {
    assert.equal((await readStatus(parseStoreAddress(without, {}))).schemaVersion, SCHEMA_VERSION);
  } finally {
    delete process.env.PGPASSFILE;
  }
});

test('host, port, user and database come from the usual variables if the URL has none', () => {
  const [server] = parseStoreAddress('postgresql://', {
    PGHOST: 'db.example',
    PGPORT: '6000',
    PGUSER: 'mesh',
    PGDATABASE: 'state',
  });
  assert.equal(server?.shown, 'db.example:6000/state');
  assert.equal(server?.config.user, 'mesh');
});

test('a unix socket is addressed by its folder', async () => {
  const { pathname } = new URL(await migratedDatabase(cluster));
  const url = `postgresql://postgres@${pathname}?host=${cluster.socketFolder}&port=${cluster.port}`;
  assert.equal((await readStatus(parseStoreAddress(url, {}))).schemaVersion, SCHEMA_VERSION);
});

for (const [what, url, sentence] of [
  ['no URL', 'db.example', /^The store must be named by a URL such as postgresql:/],
  ['a URL of something else', 'https://db.example/x', /^The store must be named by a URL such as/],
  [
    'a mode of TLS that checks nothing it promises',
    'postgresql://mesh:s3cret@db/x?sslmode=prefer',
    /^sslmode of the store must be one of disable, require, verify-ca, verify-full$/,
  ],
  [
    'a certificate that cannot be read',
    'postgresql://mesh:s3cret@db/x?sslmode=verify-full&sslrootcert=/nonexistent',
    /^The URL of the store cannot be used: the file \/nonexistent cannot be read \(ENOENT\)$/,
  ],
  ['a port that is none', 'postgresql://mesh:s3cret@db:port/x', /^The URL of the store cannot/],
] as const) {
  test(`an address that is ${what} is refused without being repeated`, () => {
    assert.throws(
      () => parseStoreAddress(url, {}),
      (error: Error) => {
        assert.match(error.message, sentence);
        assert.ok(!error.message.includes('s3cret'));
        return true;
      },
    );
  });
}

test('the usual variables can require TLS too', () => {
  const [server] = parseStoreAddress('postgresql://db/x', { PGSSLMODE: 'verify-full' });
  assert.ok(server !== undefined && typeof server.config.ssl === 'object');
  assert.deepEqual({ ...server.config.ssl }, {}, 'nothing is left unchecked');
  assert.throws(() => parseStoreAddress('postgresql://db/x', { PGSSLMODE: 'verify-ca' }), {
    message: /needs sslrootcert/,
  });
});

test('commits wait for the disk, whatever the default of the database', async () => {
  const url = await migratedDatabase(cluster);
  const database = new URL(url).pathname.slice(1);
  await cluster.query(database, `alter database ${database} set synchronous_commit = off`);
  const store = await openPostgresqlStore(storeOptions(url));
  assert.equal(store.durability.synchronous_commit, 'on');
  assert.match(store.durability.meaning, /is on the disk of the one database server/);
  await store.close();
});

test('an instance whose clock is more than a second from that of the database is refused', async () => {
  const url = await migratedDatabase(cluster);
  const standby = {
    configuration: {},
    link: null,
    seen: () => undefined,
    missed: () => undefined,
    cannotWrite: () => undefined,
    waiting: () => undefined,
    signal: new AbortController().signal,
  };
  for (const [ms, words] of [
    // Less by what the answer takes, because the clocks may have differed by that much less.
    [61_500, 'ahead of'],
    [-61_500, 'behind'],
  ] as const) {
    const now = () => Date.now() + ms;
    await assert.rejects(openPostgresqlStore(storeOptions(url, { standby, now })), {
      message: new RegExp(
        `^The clock of this machine is 6[01]\\.\\d s ${words} the database clock; synchronize both, for example with NTP$`,
      ),
    });
  }
  const now = () => Date.now() + 500;
  await (await openPostgresqlStore(storeOptions(url, { standby, now }))).close();
});

test('a clock that later differs from that of the database is measured, by active and waiting instances', async () => {
  const url = await migratedDatabase(cluster);
  let ahead = 0;
  const now = () => Date.now() + ahead;
  let wait: () => void = () => undefined;
  const waits = new Promise<void>((resolve) => {
    wait = resolve;
  });
  const measured = { active: 0, waiting: 0 };
  const ended = new AbortController();
  const standby = {
    configuration: {},
    link: null,
    seen: () => undefined,
    missed: () => undefined,
    cannotWrite: () => undefined,
    waiting: () => wait(),
    signal: ended.signal,
  };
  const given = { standby, now, leaseMs: 1500 };
  const store = await openPostgresqlStore(
    storeOptions(url, { ...given, clockCompared: (ms) => Object.assign(measured, { active: ms }) }),
  );
  const waiting = openPostgresqlStore(
    storeOptions(url, {
      ...given,
      clockCompared: (ms) => Object.assign(measured, { waiting: ms }),
    }),
  );
  await waits;
  for (const ms of [3000, -3000, 0]) {
    ahead = ms;
    const isSeen = (by: number) => Math.abs(by - ms) < 1000;
    while (!isSeen(measured.active) || !isSeen(measured.waiting)) await pause(20);
  }
  ended.abort();
  await assert.rejects(waiting, /The waiting was ended/);
  await store.close();
});

test('a difference of the clocks is logged once, and once when they agree again', () => {
  const { logger, text } = keptLog();
  const seen: number[] = [];
  const compared = followDatabaseClock(logger, (ms) => seen.push(ms));
  for (const ms of [900, 1100, 5000, 900, 400, -1200]) compared(ms);
  assert.deepEqual(seen, [900, 1100, 5000, 900, 400, -1200]);
  const [first, agrees, behind, ...more] = text().trimEnd().split('\n');
  assert.match(first ?? '', /WARNING mesh\.clock The clock of this machine is 1\.1 s ahead of/);
  assert.match(agrees ?? '', /INFO mesh\.clock .* agrees with that of the database again/);
  assert.match(behind ?? '', /WARNING mesh\.clock The clock of this machine is 1\.2 s behind/);
  assert.deepEqual(more, []);
});

test('the server gives up a session within half a minute of its machine having vanished', async () => {
  const { client } = await connectToPrimary(parseStoreAddress(cluster.url('postgres'), {}));
  const settings = ['idle', 'interval', 'count'].map(
    (name) => `current_setting('tcp_keepalives_${name}')::int as ${name}`,
  );
  const { rows } = await client.query(`select ${settings.join()}`);
  await disconnect(client);
  const { idle, interval, count } = rows[0];
  assert.ok(idle > 0 && idle + interval * count <= 30, JSON.stringify(rows));
});
