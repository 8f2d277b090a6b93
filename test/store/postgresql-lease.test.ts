/** The lease on a real PostgreSQL; the test sets the clocks of holders. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { after, test } from 'node:test';
import pg from 'pg';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import type { LeaseClock } from '../../src/store/postgresql/clocks.ts';
import { connectToPrimary } from '../../src/store/postgresql/connect.ts';
import { acquireLease, type Lease, type Standby } from '../../src/store/postgresql/lease.ts';
import { connectToLease, type LeaseTable } from '../../src/store/postgresql/lease-table.ts';
import { openPostgresqlStore } from '../../src/store/postgresql/store.ts';
import type { Store, Unit } from '../../src/store/store.ts';
import { HOUR, MINUTE } from '../support/clock.ts';
import { type CuttableProxy, cuttableProxy } from '../support/instances.ts';
import { SETTABLE_CLOCK, settingClock, startCluster } from '../support/postgresql.ts';
import { migratedDatabase, SYSTEM_CLOCK, storeOptions } from '../support/postgresql-store.ts';
import { scratchFolder } from '../support/scratch.ts';
import { sharedCluster } from '../support/shared-cluster.ts';
import { absentStandby } from '../support/standby-waits.ts';
import { loadAll } from '../support/stored.ts';
import { until } from '../support/until.ts';
import { created, unit } from './conformance.ts';

const cluster = await sharedCluster();
/** For tests that stop the server or change its settings. */
const own = await startCluster();
after(() => own[Symbol.asyncDispose]());

const HOLDER_ID = '6f7ad1fc-1f0e-4a6c-8a3b-0f6f9b3d2c11';
const TTL = 3000;
/** For this long after a renewal was sent, no one else can be the holder. */
const LASTS = 2700;
/** The index of a holder's connection for changes; the first one is for its lease. */
const WRITING = 1;

test('a new database had no holder, one that released it closed it, and any other was lost', async () => {
  const url = await cluster.createStore();
  const seen: string[] = [];
  for (const end of ['released', 'abandoned', 'released', 'released'] as const) {
    const { lease } = await hold(url);
    seen.push(`${lease.term} ${lease.previousOwner}`);
    await lease.end(end);
  }
  assert.deepEqual(seen, ['1 none', '2 closed', '3 lost', '4 closed']);
});

test('the database plans no statement about the lease again, however its plan is counted', async () => {
  const url = await cluster.createStore();
  const { client } = await connectToPrimary(parseStoreAddress(url, {}));
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(
    'explain (analyze) select epoch, released or expires_at < now() from mesh_na.writer_lease',
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  assert.match(plan, /Seq Scan on writer_lease/);
  assert.doesNotMatch(plan, /JIT/);
  await client.end();
});

test('it is kept as long as it is renewed', async () => {
  const { lease, clock, lost } = await hold(await cluster.createStore());
  for (let i = 0; i < 5; i += 1) {
    await clock.advance(1000);
    await until(() => clock.isWaiting());
    assert.ok(lease.isHeld());
  }
  assert.equal(lease.problem(), null);
  assert.deepEqual(lost, []);
  await lease.end('released');
  assert.ok(!lease.isHeld());
});

test('the holder counts from before it sent the renewal, however late the answer is', async () => {
  const url = await cluster.createStore();
  const { lease, clock } = await hold(url);
  const other = await connected(url);
  await other.query('begin; select * from mesh_na.writer_lease for update');
  await clock.advance(1000);
  await clock.advance(1500);
  assert.ok(lease.isHeld(), 'until 2,700 by the first renewal');
  await other.query('commit');
  await until(() => clock.isWaiting());
  await clock.advance(1000 + LASTS - 2500 - 1, 'without renewals');
  assert.ok(lease.isHeld());
  await clock.advance(1, 'without renewals');
  assert.ok(!lease.isHeld(), 'the renewal was sent at 1,000');
  await other.end();
  await lease.end('released');
});

for (const [name, answers] of [
  ['one answer may take two thirds of the time', [2000]],
  ['several in a row may take two fifths each', [1200, 1200, 1200]],
] as const) {
  test(`a lease is kept although the database stalls: ${name}`, async () => {
    const url = await cluster.createStore();
    const { lease, clock } = await hold(url);
    const other = await connected(url);
    for (const late of answers) {
      await other.query('begin; select * from mesh_na.writer_lease for update');
      while (clock.isWaiting()) await clock.advance(100);
      for (let waited = 0; waited < late; waited += 100) {
        await clock.advance(100);
        assert.ok(lease.isHeld(), `${waited + 100} ms after the renewal was sent`);
      }
      await other.query('commit');
      await until(() => clock.isWaiting());
    }
    assert.equal(lease.problem(), null);
    await other.end();
    await lease.end('released');
  });
}

test('a renewal that was answered while its holder was suspended counts', async () => {
  const url = await cluster.createStore();
  const ttl = 1500;
  const { lease, lost } = await holdBy(SYSTEM_CLOCK, url, ttl);
  const other = await connected(url);
  const watcher = await connected(url);
  await other.query('begin; select * from mesh_na.writer_lease for update');
  await until(() => isAnyLocked(watcher));
  const answering = other.query('commit');
  suspend(ttl + 100);
  await answering;
  await until(() => lease.isHeld() || lost.length > 0);
  assert.deepEqual(lost, []);
  await Promise.all([other.end(), watcher.end()]);
  await lease.end('released');
});

test('a holder that was suspended continues if no one has taken over meanwhile', async () => {
  const { lease, clock, lost } = await hold(await cluster.createStore());
  await clock.advance(3_600_000, 'without renewals');
  assert.ok(!lease.isHeld(), 'until the database has been asked');
  await clock.advance(0);
  await until(() => lease.isHeld());
  assert.deepEqual(lost, []);
  await lease.end('released');
});

test('a holder whose lease was taken learns it at the next renewal, once', async () => {
  const url = await cluster.createStore();
  const first = await hold(url);
  await runOut(url);
  const second = await hold(url);
  assert.equal(second.lease.previousOwner, 'lost');
  await first.clock.advance(1000);
  await until(() => first.lost.length > 0);
  assert.deepEqual(first.lost, ['Another process has taken over the database']);
  assert.ok(!first.lease.isOwned() && !first.lease.isHeld());
  assert.equal(first.lease.problem(), 'Another process has taken over the database');
  assert.ok(!first.clock.isWaiting(), 'it renews no more');
  await first.lease.end('released');
  await second.clock.advance(1000);
  await until(() => second.clock.isWaiting());
  assert.ok(second.lease.isHeld(), 'the former holder’s end changes nothing');
  await second.lease.end('released');
});

for (const [how, seconds] of [
  ['a clock that goes on', 0],
  ['a clock that is set back by a minute', -60],
  ['a clock that is set forward by a minute', 60],
] as const) {
  test(`a waiter takes over from a dead holder when it has seen the lease unchanged for its duration, with ${how} in the database`, async () => {
    const url = await cluster.createStore();
    await withSettableClock(url);
    const dead = await hold(url);
    const clock = manualClock();
    let isTaken = false;
    const waiting = holdBy(clock, url).finally(() => (isTaken = true));
    await until(() => clock.isWaiting());
    await setClock(url, seconds);
    for (let waited = 0; waited < TTL; waited += 100) {
      assert.ok(!isTaken, `after ${waited} ms`);
      await clock.advance(100);
      await until(() => clock.isWaiting() || isTaken);
    }
    const { lease } = await waiting;
    assert.deepEqual([lease.term, lease.previousOwner], [2, 'lost']);
    await lease.end('released');
    await dead.lease.end('abandoned');
  });
}

test('a waiter is refused while the holder renews, and learns who it is', async () => {
  const url = await cluster.createStore();
  const holder = await hold(url);
  const clock = manualClock();
  const waiting = holdBy(clock, url);
  await until(() => clock.isWaiting());
  await holder.clock.advance(1000);
  await until(() => holder.clock.isWaiting());
  const refused = assert.rejects(waiting, {
    message:
      /^The database is in use by another process \(pid 7 on machine\), which has renewed its lease until 2\d{3}-[^;]+; stop that one, or name another database by --store$/,
  });
  await clock.advance(250);
  await refused;
  await holder.lease.end('released');
});

test('while the database does not answer there is a problem, and at the end of the time the lease is lost', async () => {
  const { lease, clock, lost } = await hold(await migratedDatabase(own));
  await own.stop('SIGQUIT');
  await clock.advance(1000);
  await until(() => lease.problem() !== null);
  assert.match(lease.problem() ?? '', /^The database does not answer: /);
  assert.deepEqual([lease.isHeld(), lease.isOwned(), lost.length], [true, true, 0]);
  await until(() => clock.isWaiting());
  await own.start();
  await clock.advance(1000);
  await until(() => lease.problem() === null);
  await until(() => clock.isWaiting());
  await own.stop('SIGQUIT');
  for (let i = 0; i < 3; i += 1) {
    await clock.advance(1000);
    await until(() => clock.isWaiting() || lost.length > 0);
  }
  assert.equal(lost.length, 1);
  assert.ok(!lease.isOwned());
  await lease.end('abandoned');
  await own.start();
});

test('a former holder can store nothing, whatever it believes', async () => {
  const url = await cluster.createStore();
  const former = await openPostgresqlStore(storeOptions(url, { clock: manualClock() }));
  await former.commit(unitOf('before'));
  await runOut(url);
  const holder = await openPostgresqlStore(storeOptions(url));
  const attempts = [
    former.commit(unitOf('late')),
    former.touchMany([contact('before')], []),
    former.forgetNonces(HOUR, []),
  ];
  const refusal = { message: 'Another process has taken over the database' };
  await Promise.all(attempts.map((late) => assert.rejects(late, refusal)));
  assert.equal(former.health(), 'Another process has taken over the database');
  await former.close();
  assert.equal(await holder.commit(unitOf('next')), 2);
  const { subjects, liveness, nonces } = await loadAll(holder);
  assert.deepEqual(
    subjects.map(({ id }) => id),
    ['before', 'next'],
  );
  assert.deepEqual([liveness.length, nonces.length], [0, 2]);
  await holder.close();
});

test('of two holders with one number, as in a database that has lost a takeover, the lost one can neither renew, store nor end anything', async () => {
  const url = await cluster.createStore();
  const { lease, clock, lost } = await hold(url);
  const former = await openPostgresqlStore(storeOptions(await lostTakeOver(url)));
  await lostTakeOver(url);
  const holder = await openPostgresqlStore(storeOptions(url));
  assert.deepEqual([lease.term, former.lease.term, holder.lease.term], [1, 1, 1]);
  await clock.advance(1000);
  await until(() => lost.length > 0);
  assert.deepEqual(lost, ['Another process has taken over the database']);
  const refusal = { message: 'Another process has taken over the database' };
  await assert.rejects(former.touchMany([contact('before')], []), refusal);
  await assert.rejects(former.commit(unitOf('late')), refusal);
  await former.close();
  assert.equal(await holder.commit(unitOf('next')), 1);
  assert.equal((await holder.position()).revision, 1);
  await holder.close();
});

test('a new database does not go to a process whose lease was taken', async () => {
  const url = await cluster.createStore();
  const client = await connected(url);
  // Another process becomes the next holder before this one continues.
  await client.query(`
    create function taken_at_once() returns trigger language plpgsql as $$
    begin update mesh_na.writer_lease set epoch = epoch + 1; return null; end $$;
    create trigger taken_at_once after update on mesh_na.writer_lease
      for each row when (pg_trigger_depth() = 0) execute function taken_at_once();
  `);
  const keys = scratchFolder('mesh-na-lease-');
  const network = { network_name: 'alpha', root_public_key: 'a', authority_public_key: 'b' };
  await assert.rejects(openPostgresqlStore(storeOptions(url, { network, dataDir: keys.path })), {
    message: /Another process has taken over the database$/,
  });
  const { rowCount } = await client.query(`select from mesh_na.meta where key = 'network'`);
  assert.equal(rowCount, 0);
  assert.ok(!readdirSync(keys.path).includes('mesh-na.state.json'), 'nor are its keys in use');
  await client.end();
  keys.remove();
});

test('a restart of the database between two changes is survived, and waited for', async () => {
  const store = await openPostgresqlStore(storeOptions(await migratedDatabase(own)));
  assert.equal(await store.commit(unitOf('before')), 1);
  await own.stop('SIGINT');
  const waiting = store.commit(unitOf('meanwhile'));
  await own.start();
  assert.equal(await waiting, 2);
  await own.stop('SIGINT');
  const forgetting = store.forgetNonces(2 * HOUR, []);
  await own.start();
  await forgetting;
  await store.touchMany([contact('before')], []);
  const { subjects, nonces, previousOwner } = await loadAll(store);
  assert.deepEqual([subjects.length, nonces.length, previousOwner], [2, 0, 'none']);
  await store.close();
});

for (const [what, work] of [
  ['a commit', (store: Store) => store.commit(unitOf('late'))],
  ['a question', (store: Store) => store.auditHashAt(1)],
] as const) {
  test(`the process gives up when ${what} has no answer for the duration of the lease, while renewals continue`, async () => {
    await using proxy = await cuttableProxy(`127.0.0.1:${cluster.port}`);
    const url = throughProxy(await cluster.createStore(), proxy);
    const clock = manualClock();
    const lost: string[] = [];
    const store = await openPostgresqlStore(
      storeOptions(url, { clock, leaseMs: TTL, lost: (problem) => lost.push(problem) }),
    );
    assert.equal(await store.commit(unitOf('before')), 1);
    proxy.cutOnly(WRITING);
    const refused = assert.rejects(
      work(store),
      /has not answered a statement for 3 s: what is between/,
    );
    for (let waited = 0; waited < TTL; waited += 500) {
      await until(() => clock.scheduled() === 2);
      assert.deepEqual(lost, [], `after ${waited} ms`);
      await clock.advance(500);
    }
    await refused;
    assert.match(
      lost.join('; '),
      /^The database renews the lease, and has not answered a statement/,
    );
    assert.ok(store.isOwner(), 'nobody else is the holder');
    await store.close();
  });
}

test('a database that stalls entirely is waited for, until the lease is lost', async () => {
  await using proxy = await cuttableProxy(`127.0.0.1:${cluster.port}`);
  const url = throughProxy(await cluster.createStore(), proxy);
  const clock = manualClock();
  const lost: string[] = [];
  const store = await openPostgresqlStore(
    storeOptions(url, { clock, leaseMs: TTL, lost: (problem) => lost.push(problem) }),
  );
  proxy.cut('both');
  let isOver = false;
  const committed = store.commit(unitOf('late')).finally(() => {
    isOver = true;
  });
  const refused = assert.rejects(committed);
  await clock.advance(TTL);
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  assert.deepEqual([isOver, lost], [false, []]);
  proxy.heal();
  await refused;
  await store.close();
});

test('a change waits for the disk, although a pooler has reset the settings of its session', async () => {
  const url = await cluster.createStore();
  const client = await connected(url);
  await client.query(`
    create table seen (setting text);
    create function sees() returns trigger language plpgsql as $$
    begin
      insert into public.seen values (current_setting('synchronous_commit')), (current_setting('client_min_messages'));
      return null;
    end $$;
    create constraint trigger sees after insert or update on mesh_na.meta deferrable initially deferred
      for each row execute function sees();
    create constraint trigger sees after update on mesh_na.writer_lease deferrable initially deferred
      for each row execute function sees();
    do $$ begin
      execute format('alter database %I set synchronous_commit = off', current_database());
      execute format('alter database %I set client_min_messages = error', current_database());
    end $$;
  `);
  await using pooler = await poolerOfTransactions(cluster.port);
  const store = await openPostgresqlStore(
    storeOptions(throughProxy(url, pooler), { leaseMs: TTL }),
  );
  assert.equal(await store.commit(unitOf('one')), 1);
  await store.touchMany([contact('one')], [[1, 2]]);
  await store.forgetNonces(HOUR, []);
  await store.close();
  const { rows } = await client.query(
    'select setting, count(*)::int as times from seen group by 1',
  );
  const [on, warning, ...others] = rows.toSorted((one, other) =>
    one.setting < other.setting ? -1 : 1,
  );
  assert.deepEqual([on?.setting, warning?.setting, others], ['on', 'warning', []]);
  // The tables of the state, and two changes to the lease.
  assert.ok(on.times >= 5, `${on.times}`);
  await client.end();
});

test('a database that lacks acknowledged changes is not built upon', async () => {
  const url = await cluster.createStore();
  const store = await openPostgresqlStore(storeOptions(url));
  const client = await connected(url);
  const { rows } = await client.query(`select value from mesh_na.meta where key = 'totals'`);
  await store.commit(unitOf('lost'));
  await client.query(`update mesh_na.meta set value = $1 where key = 'totals'`, [rows[0].value]);
  await client.query('delete from mesh_na.subjects');
  await assert.rejects(store.commit(unitOf('next')), {
    message: 'The database is at another revision than this process',
  });
  assert.notEqual(store.health(), null);
  assert.equal((await client.query('select from mesh_na.subjects')).rowCount, 0);
  await client.end();
  await store.close();
});

test('a commit that stops waiting for its standby is not acknowledged', async () => {
  const url = await migratedDatabase(own);
  const store = await openPostgresqlStore(storeOptions(url));
  assert.equal(await store.commit(unitOf('before')), 1);
  await using absent = await absentStandby(url);
  await absent.goAway();
  await assert.rejects(
    absent.canceling('select mesh_na.hold_lease', () => store.commit(unitOf('alone'))),
    { message: /^canceling wait for synchronous repl/ },
  );
  await absent.comeBack();
  await store.close();
});

test('while a standby is away, those who want the lease leave no sessions behind, and get it when the standby is back', async () => {
  const url = await migratedDatabase(own);
  const client = await connected(url);
  const dead = await hold(url);
  await runOut(url);
  await using absent = await absentStandby(url);
  await absent.goAway();
  let attempts = 0;
  const ttl = 300;
  const waiting = acquireLease({
    holder: { id: randomUUID(), name: 'pid 8 on machine' },
    standby: standby(new AbortController().signal, () => undefined),
    // This clock stands still, because on a slow machine, the attempts take longer than a start waits for a database.
    clock: { ...SYSTEM_CLOCK, elapsed: () => 0 },
    ttl,
    connect() {
      attempts += 1;
      return leaseTableOf(url, ttl);
    },
    confirmed: () => undefined,
    lost: () => undefined,
  });
  await until(() => attempts >= 8);
  const { rowCount: left } = await client.query(
    `select from pg_stat_activity
      where application_name = 'mesh-na' and wait_event_type in ('Lock', 'IPC')`,
  );
  assert.ok(left !== null && left <= 2, `${left} sessions after ${attempts} attempts`);
  await absent.comeBack();
  const lease = await waiting;
  assert.deepEqual([lease.term, lease.previousOwner], [2, 'lost'], 'by the first attempt');
  await lease.end('released');
  await client.end();
  await dead.lease.end('abandoned');
});

test('another warning of the database is no reason to distrust a commit', async () => {
  const url = await cluster.createStore();
  const client = await connected(url);
  await client.query(`
    create function warns() returns trigger language plpgsql as $$
    begin raise warning 'another server process has crashed'; return null; end $$;
    create trigger warns after insert on mesh_na.subjects for each statement execute function warns();
  `);
  await client.end();
  const store = await openPostgresqlStore(storeOptions(url));
  assert.equal(await store.commit(unitOf('one')), 1);
  assert.equal(await store.commit(unitOf('another')), 2);
  assert.equal(store.health(), null);
  await store.close();
});

test('a takeover waits for the commit under way, and the renewal does not', async () => {
  const url = await cluster.createStore();
  const { lease, clock } = await hold(url);
  const writer = await connected(url);
  await writer.query(`begin; select mesh_na.hold_lease(${lease.term})`);
  await clock.advance(1000);
  await until(() => clock.isWaiting());
  assert.ok(lease.isHeld(), 'renewed');
  const taker = await connected(url);
  let isTaken = false;
  const taking = taker
    .query('update mesh_na.writer_lease set epoch = epoch + 1')
    .then(() => (isTaken = true));
  await until(() => isAnyLocked(writer));
  assert.ok(!isTaken);
  await writer.query('commit');
  await taking;
  await Promise.all([writer.end(), taker.end()]);
  await lease.end('abandoned');
});

test('a lease that expires while its renewal is being stored is not taken', async () => {
  const url = await cluster.createStore();
  const { lease } = await hold(url);
  await runOut(url);
  const renewal = await connected(url);
  const expired = 'select from mesh_na.writer_lease where expires_at < clock_timestamp()';
  assert.equal((await renewal.query(expired)).rowCount, 1);
  await renewal.query(
    `begin; update mesh_na.writer_lease set expires_at = clock_timestamp() + '1 hour'`,
  );
  const table = await leaseTableOf(url, TTL);
  const seen = await table.look();
  const taking = table.take(
    { id: HOLDER_ID, name: 'another', configuration: null, link: null },
    TTL,
    seen,
  );
  await until(() => isAnyLocked(renewal));
  await renewal.query('commit');
  assert.equal(await taking, null);
  await Promise.all([renewal.end(), table.disconnect()]);
  await lease.end('released');
});

test('a waiter is notified of the end of a lease, and does not poll for it', async () => {
  const url = await cluster.createStore();
  const first = await hold(url);
  const clock = manualClock();
  let isWaiting = false;
  let isTaken = false;
  const second = holdBy(
    clock,
    url,
    TTL,
    standby(new AbortController().signal, () => {
      isWaiting = true;
    }),
  );
  void second.then(() => {
    isTaken = true;
  });
  await until(() => clock.isWaiting());
  await first.clock.advance(1000);
  await until(async () => {
    // One check at a time: otherwise, the lease may expire before its renewal is stored.
    if (!isWaiting && clock.isWaiting()) await clock.advance(100);
    return isWaiting && clock.isWaiting();
  });
  assert.ok(!isTaken);
  await first.lease.end('released');
  const { lease } = await second;
  assert.deepEqual([lease.term, lease.previousOwner], [2, 'closed']);
  await lease.end('released');
});

test('a waiter pauses before another connection, even if it was notified as the previous one failed', async () => {
  const url = await cluster.createStore();
  const first = await hold(url);
  const clock = manualClock();
  let isWaiting = false;
  let isFailing = false;
  let connections = 0;
  const ended = new AbortController();
  const second = acquireLease({
    holder: { id: HOLDER_ID, name: 'pid 8 on machine' },
    standby: standby(ended.signal, () => {
      isWaiting = true;
    }),
    clock,
    ttl: TTL,
    async connect() {
      connections += 1;
      const table = await leaseTableOf(url, TTL);
      let notify: () => void = () => undefined;
      return {
        ...table,
        look() {
          if (!isFailing) return table.look();
          notify();
          return Promise.reject(new Error('The connection was lost'));
        },
        listen(call) {
          notify = call;
          return table.listen(call);
        },
      };
    },
    confirmed: () => undefined,
    lost: () => undefined,
  });
  await until(() => clock.isWaiting());
  await first.clock.advance(1000);
  await until(async () => {
    // One check at a time: otherwise, the lease may expire before its renewal is stored.
    if (!isWaiting && clock.isWaiting()) await clock.advance(100);
    return isWaiting && clock.isWaiting();
  });
  isFailing = true;
  await clock.advance(100);
  await until(() => clock.isWaiting());
  assert.equal(connections, 1);
  ended.abort();
  await clock.advance(100);
  await assert.rejects(second, /The waiting was ended/);
  await first.lease.end('released');
});

interface ManualClock extends LeaseClock {
  /** Advances the clock and runs everything that is due; runs nothing with `without renewals`. */
  advance(milliseconds: number, how?: 'without renewals'): Promise<void>;
  /** Whether anything is scheduled. */
  isWaiting(): boolean;
  scheduled(): number;
}

function manualClock(): ManualClock {
  let now = 1000;
  const scheduled = new Map<symbol, { readonly at: number; readonly work: () => void }>();
  return {
    elapsed: () => now,
    after(milliseconds, work) {
      const key = Symbol('scheduled');
      scheduled.set(key, { at: now + milliseconds, work });
      return () => scheduled.delete(key);
    },
    async advance(milliseconds, how) {
      now += milliseconds;
      if (how !== undefined) return;
      for (const [key, { at, work }] of scheduled) {
        if (at > now || !scheduled.delete(key)) continue;
        work();
      }
    },
    isWaiting: () => scheduled.size > 0,
    scheduled: () => scheduled.size,
  };
}

interface Held<Clock extends LeaseClock> {
  readonly lease: Lease;
  readonly clock: Clock;
  readonly lost: string[];
}

function standby(signal: AbortSignal, waiting: () => void): Standby {
  return {
    configuration: {},
    link: null,
    seen: () => undefined,
    missed: () => undefined,
    cannotWrite: () => undefined,
    waiting,
    signal,
  };
}

function hold(url: string): Promise<Held<ManualClock>> {
  return holdBy(manualClock(), url);
}

async function holdBy<Clock extends LeaseClock>(
  clock: Clock,
  url: string,
  ttl = TTL,
  standby: Standby | null = null,
): Promise<Held<Clock>> {
  const lost: string[] = [];
  const lease = await acquireLease({
    holder: { id: randomUUID(), name: 'pid 7 on machine' },
    standby,
    clock,
    ttl,
    connect: () => leaseTableOf(url, ttl),
    confirmed: () => undefined,
    lost: (problem) => lost.push(problem),
  });
  return { lease, clock, lost };
}

function leaseTableOf(url: string, leaseMs: number): Promise<LeaseTable> {
  const options = { leaseMs, now: Date.now, clockCompared: () => undefined };
  return connectToLease(parseStoreAddress(url, {}), options);
}

/** Has the same effect as a signal that suspends the whole process. */
function suspend(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

async function isAnyLocked(client: pg.Client): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rowCount !== 0;
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  return client;
}

function throughProxy(url: string, { address }: Pick<CuttableProxy, 'address'>): string {
  return url.replace(/@[^/]+/, `@${address}`);
}

/**
 * Acts like a pooler that runs each transaction in another session: settings of a session apply to only one
 * transaction.
 */
async function poolerOfTransactions(port: number): Promise<{ address: string } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer((inner) => {
    const outer = connect(port, '127.0.0.1');
    inner.on('data', (bytes) => {
      const sent = bytes.toString('latin1');
      const lost = sent
        .replace("'on', false", "'on', true ")
        .replace("client_min_messages = 'warning'", "client_min_messages = 'error'  ");
      outer.write(Buffer.from(lost, 'latin1'));
    });
    outer.pipe(inner);
    for (const socket of [inner, outer]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => inner.destroy() && outer.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Changes the database as if it had lost the record that there ever was a holder; returns its address. */
async function lostTakeOver(url: string): Promise<string> {
  const client = await connected(url);
  await client.query(
    'update mesh_na.writer_lease set epoch = 0, holder = null, released = true, lasts = null',
  );
  await client.end();
  return url;
}

/** Ends the lease as if everyone who waits for its end had waited long enough. */
async function runOut(url: string): Promise<void> {
  const client = await connected(url);
  await client.query(`update mesh_na.writer_lease set lasts = '0', expires_at = clock_timestamp()`);
  await client.end();
}

/** Makes the clock of this database settable in new sessions, without affecting others. */
async function withSettableClock(url: string): Promise<void> {
  const client = await connected(url);
  await client.query(SETTABLE_CLOCK);
  await client.end();
}

async function setClock(url: string, seconds: number): Promise<void> {
  const client = await connected(url);
  await client.query(settingClock(seconds));
  await client.end();
}

function unitOf(id: string): Unit {
  const nonces = [{ digest: `n-${id}`, forgetAt: HOUR - MINUTE }];
  return unit({ subjects: [created('c', id, {})], nonces });
}

function contact(id: string) {
  return { id, lastSeen: 1, status: '', remoteAddr: '', newestSignedAt: 0 };
}
