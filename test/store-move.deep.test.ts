/** A state moves from a data folder to PostgreSQL and back, is only ever served from one of them, and waits for standbys. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { placeOf } from '../src/cli/state/store.ts';
import { checkMove, moveState, type Place } from '../src/maintenance/move/move.ts';
import { openLmdbSource, readAuditEntries } from '../src/store/lmdb/source.ts';
import { openLmdbStore } from '../src/store/lmdb/store.ts';
import { metaValue } from '../src/store/meta-rows.ts';
import { openPostgresqlStore } from '../src/store/postgresql/store.ts';
import type { Store } from '../src/store/store.ts';
import type { HeldState, StateReceiver } from '../src/store/stream/ports.ts';
import { startTestAuthority } from './support/authority.ts';
import {
  type ChildServer,
  NO_LIMITS,
  runProgram,
  startChildServer,
} from './support/child-server.ts';
import { networkFolder } from './support/folders.ts';
import { emptyFolder, enough, judge, keysOf, runMove, startWorkload } from './support/moves.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase, storeOptions } from './support/postgresql-store.ts';
import {
  get,
  invite,
  joinedNode,
  newKey,
  operate,
  operatorRequest,
  outcome,
  type SignedRequest,
  sendSigned,
  signedByNode,
} from './support/requests.ts';
import { absentStandby } from './support/standby-waits.ts';
import { openTerminal, programLine } from './support/terminal.ts';
import { LMDB_ONLY } from './support/test-stores.ts';

interface Death {
  readonly when: string;
  /** The places, changed so that a move dies at this point. */
  at(places: Places): Partial<Places>;
  /** Whether the new place contains anything by then. */
  readonly isBegun: boolean;
  /** Whether the old place has been given up by then. */
  readonly isMarked: boolean;
  /** Whether the new place can be served from by then. */
  readonly isPublished: boolean;
}

const DEATHS: readonly Death[] = [
  {
    when: 'before anything is copied',
    at: ({ to }) => ({ to: receiving(to, () => ({ take: dying })) }),
    isBegun: false,
    isMarked: false,
    isPublished: false,
  },
  {
    when: 'when everything is copied',
    at: ({ to }) => ({ to: receiving(to, () => ({ taken: dying })) }),
    isBegun: true,
    isMarked: false,
    isPublished: false,
  },
  {
    when: 'before the old place is given up',
    at: ({ from }) => ({ from: holding(from, () => ({ retire: dying })) }),
    isBegun: true,
    isMarked: false,
    isPublished: false,
  },
  {
    when: 'when the old place is given up',
    at: ({ from }) => ({
      from: holding(from, ({ retire }) => ({
        retire: (...last) => retire(...last).then(dying),
      })),
    }),
    isBegun: true,
    isMarked: true,
    isPublished: false,
  },
  {
    when: 'when the new place is published',
    at: ({ to }) => ({
      to: receiving(to, ({ publish }) => ({
        publish: (isClosed) => publish(isClosed).then(dying),
      })),
    }),
    isBegun: true,
    isMarked: true,
    isPublished: true,
  },
];

function dying(): Promise<never> {
  return Promise.reject(new Error('It dies here'));
}

suite('a move', { concurrency: false, ...LMDB_ONLY }, () => {
  let cluster: TestCluster;
  const stateFolder = stoppedStates();
  before(async () => {
    cluster = await startCluster();
  });
  after(async () => {
    await cluster[Symbol.asyncDispose]();
  });

  test('copies everything there and back once a person, or --yes, has agreed and nobody serves, and leaves one state that can be served', async (t) => {
    await using folder = await networkFolder('alpha');
    const back = keysOf(folder.path, t);
    const store = await migratedDatabase(cluster);
    await using first = await startChildServer(folder.path);
    const places = ['--from', `lmdb:${folder.path}`, '--to', store, '--data-dir', folder.path];
    const move = ['store', 'move', ...places];

    const [unasked, dry] = await Promise.all([
      runProgram(move),
      runProgram([...move, '--dry-run']),
    ]);
    assert.equal(unasked.code, 2);
    assert.match(
      unasked.stderr,
      /add --yes, or use --dry-run to see what would be moved\n {2}See mesh-na store move --help\.\n$/,
    );
    assert.equal(dry.code, 0, dry.stderr);
    assert.match(dry.stdout, /^To be moved: revision \d+, rows: /);
    assert.match(dry.stdout, /^Nobody could serve the state for about \d+\.\d\d s\.$/m);
    await using declined = openTerminal(programLine(move), { columns: 400 });
    await declined.until(/Nobody can serve it meanwhile, and the state in \S+ can never be opened/);
    await declined.until(/Move it\? \[y\/N\] /);
    declined.type('\r');
    assert.equal(await declined.ended, 4);
    assert.match(declined.shown(), /Nothing was moved/);

    const served = await runMove({ from: `lmdb:${folder.path}`, to: store, dataDir: folder.path });
    assert.equal(served.code, 3);
    const holder = `(pid ${first.process.pid} on `;
    assert.ok(served.stderr.includes(`is in use by another process ${holder}`), served.stderr);
    assert.match(served.stderr, /: stop it first\n$/);
    assert.equal((await get(first.na, '/readyz')).status, 200, 'it serves as before');

    const load = startWorkload(first);
    await enough(load, 5);
    const spent = await spentRequests(first);
    const [revoked = { certId: '' }] = load.nodes.keys();
    await operate(first.na, '/admin/revoke', { cert_id: revoked.certId, reason: 'superseded' });
    await load.stop();
    await first.end('SIGTERM');
    await using terminal = openTerminal(programLine(move), { columns: 400 });
    await terminal.until(/Move it\? \[y\/N\] /);
    terminal.type('y\r');
    assert.equal(await terminal.ended, 0, terminal.shown());
    for (const said of PROGRESS) assert.match(terminal.shown(), said);
    const args = ['serve', '--data-dir', folder.path, '--port', '0'];
    const refused = await runProgram(args);
    assert.equal(refused.code, 3);
    assert.match(refused.stderr, /was moved to postgresql:/);

    await using second = await startChildServer(folder.path, { args: ['--store', store] });
    const verdict = await judge(second, load);
    assert.deepEqual(
      [...verdict.known].toSorted(),
      [200, 403],
      'every node is known, one is revoked',
    );
    assert.ok(!verdict.repeated.has(200), 'no heartbeat is accepted again');
    await assertReplaysRefused(second, spent);
    const crl = (await get(second.na, '/crl')).text;
    const loadThere = startWorkload(second);
    await enough(loadThere, 5);
    await loadThere.stop();
    const home = { from: store, to: `lmdb:${back}`, dataDir: folder.path };
    const early = await runMove(home);
    assert.equal(early.code, 3);
    assert.match(
      early.stderr,
      /is in use by pid \d+ on \S+: stop it, and every other instance, first/,
    );
    await second.end('SIGTERM');
    const again = await runMove(home, ['--json']);
    assert.equal(again.code, 0, again.stderr);
    const { moved, from, to, revision } = JSON.parse(again.stdout);
    assert.deepEqual([moved, from, to], [true, store, `lmdb:${back}`]);
    assert.ok(revision > 0);
    await assert.rejects(openPostgresqlStore(storeOptions(store)), /was moved to lmdb:/);

    await using third = await startChildServer(back);
    assert.deepEqual([...(await judge(third, loadThere)).known], [200]);
    assert.deepEqual([...(await judge(third, load)).known].toSorted(), [200, 403]);
    assert.equal((await get(third.na, '/crl')).text, crl);
    await assertReplaysRefused(third, spent);
    const ends = [...readAuditEntries(back)].filter((entry) => entry.event_type === 'store_moved');
    assert.deepEqual(
      ends.map(({ details }) => [String(details.from).split(':')[0], details.to]),
      [
        ['lmdb', ends[1]?.details.from],
        ['postgresql', `lmdb:${back}`],
      ],
    );
    assert.equal(ends[1]?.details.revision, revision);
    assert.deepEqual([...readAuditEntries(folder.path)].at(-1), ends[0]);
  });

  test('to a place that has a state changes nothing', async (t) => {
    const [folder, other] = [stateFolder(t), stateFolder(t)];
    const order = await orderOf(`lmdb:${folder}`, `lmdb:${other}`, folder);
    await assert.rejects(moveState(order), /holds state already/);
    await openLmdbStore(folder).close();
    await openLmdbStore(other).close();
  });

  test('that was interrupted after it closed the old place is finished at no other place', async (t) => {
    const folder = stateFolder(t);
    const [there, elsewhere] = [keysOf(folder, t), keysOf(folder, t)];
    const order = await orderOf(`lmdb:${folder}`, `lmdb:${there}`, there);
    const to = receiving(order.to, () => ({ publish: dying }));
    await assert.rejects(moveState({ ...order, to }), /It dies here/);
    const wrong = await orderOf(`lmdb:${folder}`, `lmdb:${elsewhere}`, elsewhere);
    await assert.rejects(moveState(wrong), /was moved to .* and continues there/);
    // Another state that happens to have arrived there is not that state.
    mkdirSync(join(elsewhere, '.arriving'), { recursive: true });
    cpSync(join(stateFolder(t), 'state'), join(elsewhere, '.arriving', 'state'), {
      recursive: true,
    });
    await assert.rejects(moveState(wrong), /was moved to .* and continues there/);
    await moveState(order);
    await openLmdbStore(there).close();
  });

  test('is followed by no start of a new network where its state was on the way', async (t) => {
    const folder = stateFolder(t);
    const there = keysOf(folder, t);
    const order = await orderOf(`lmdb:${folder}`, `lmdb:${there}`, there);
    const to = receiving(order.to, () => ({ complete: dying }));
    await assert.rejects(moveState({ ...order, to }), /It dies here/);
    const refused = await runProgram(['serve', '--data-dir', there, '--port', '0']);
    assert.equal(refused.code, 3);
    assert.match(
      refused.stderr,
      /being moved into the data directory; .* repeat the same mesh-na store move/,
    );
    rmSync(join(there, '.arriving'), { recursive: true });
    assert.throws(() => openLmdbStore(there), /was in use by the network "alpha", but/);
  });

  test('of a state that was not closed keeps that, whether or not its first attempt succeeds', async (t) => {
    const folder = stateFolder(t);
    await openLmdbStore(folder).abandon();
    const store = await migratedDatabase(cluster);
    const order = await orderOf(`lmdb:${folder}`, store, folder);
    const to = receiving(order.to, () => ({ taken: dying }));
    await assert.rejects(moveState({ ...order, to }), /It dies here/);
    await moveState(order);
    const opened = await openPostgresqlStore(storeOptions(store));
    assert.equal(opened.lease.previousOwner, 'lost');
    await opened.abandon();
    const back = keysOf(folder, t);
    await moveState(await orderOf(store, `lmdb:${back}`, folder));
    const source = await openLmdbSource(back);
    assert.equal(source.facts.isClosed, false);
    await source.close();
  });

  suite('that is killed', { concurrency: 3 }, () => {
    for (const death of DEATHS) {
      test(`${death.when} is served from one place or none, until it is repeated`, async (t) => {
        const folder = stateFolder(t);
        const back = keysOf(folder, t);
        const store = await migratedDatabase(cluster);
        const places = [
          { at: `lmdb:${folder}`, open: async () => openLmdbStore(folder) },
          { at: store, open: () => openPostgresqlStore(storeOptions(store)) },
          { at: `lmdb:${back}`, open: async () => openLmdbStore(back) },
        ] as const;
        await dieAndRepeat(death, places[0], places[1], back);
        await dieAndRepeat(death, places[1], places[2], folder);
      });
    }
  });
});

interface OpenedPlace {
  readonly at: string;
  open(): Promise<Store>;
}

async function dieAndRepeat(
  death: Death,
  old: OpenedPlace,
  next: OpenedPlace,
  dataDir: string,
): Promise<void> {
  const order = await orderOf(old.at, next.at, dataDir);
  const before = await checkMove(order.from, verifySignature, systemRuntime);

  await assert.rejects(moveState({ ...order, ...death.at(order) }), /It dies here/);
  if (death.isMarked) await assert.rejects(old.open(), /was moved to/);
  else await (await old.open()).close();
  if (death.isPublished) await (await next.open()).close();
  else if (death.isBegun) await assert.rejects(next.open(), /being moved into/);
  else assert.equal(await order.to.isServable(), false);

  const { facts, tables } = await moveState(order);
  const more = death.isMarked ? 1 : 0;
  assert.equal(facts.revision, before.facts.revision + more);
  assert.deepEqual(
    { ...tables, audit: tables.audit.rows },
    { ...before.tables, audit: before.tables.audit.rows + more },
  );
  await assert.rejects(old.open(), /was moved to/);
  await (await next.open()).close();
  const repeated = await moveState(order);
  assert.equal(repeated.facts.revision, before.facts.revision + 1, 'nothing more is moved');
}

/** What a move writes. */
const PROGRESS = [
  /Copied every row, in \d+\.\d\d s/,
  /Read both places, which have the same state, in /,
  /Published the new place, in /,
  /Moved: revision \d+, rows: subjects \d+/,
];

async function orderOf(from: string, to: string, dataDir: string) {
  return {
    from: await placeOf(from, dataDir),
    to: await placeOf(to, dataDir),
    verify: verifySignature,
    runtime: systemRuntime,
    onStep: () => undefined,
  };
}

/** Requests that were carried out. */
async function spentRequests({ na }: ChildServer): Promise<readonly SignedRequest[]> {
  const key = newKey();
  const token = await invite(na);
  const requests = [signedByNode(na, '/join', key, { invite_token: token })];
  const { status, body } = await sendSigned(na, requests[0] as SignedRequest);
  assert.equal(status, 200);
  requests.push(
    signedByNode(na, '/heartbeat', key, { cert_id: body.cert_id, status: 'healthy' }),
    operatorRequest(na, '/admin/invite'),
  );
  for (const request of requests.slice(1)) {
    assert.equal((await sendSigned(na, request)).status, 200);
  }
  return requests;
}

/** Checks that these requests are refused when they are sent again. */
async function assertReplaysRefused(
  { na }: ChildServer,
  requests: readonly SignedRequest[],
): Promise<void> {
  const again = await Promise.all(requests.map((request) => sendSigned(na, request)));
  assert.deepEqual(again.map(outcome), [
    '403 invalid_invite_token',
    '401 node_auth_failed',
    '401 admin_auth_failed',
  ]);
}

// A state that is moved or restored counts as there only once the standby of its database has it.

suite('a state', { concurrency: false, ...LMDB_ONLY }, () => {
  let cluster: TestCluster;
  const stateFolder = stoppedStates();
  before(async () => {
    cluster = await startCluster();
  });
  after(async () => {
    await cluster[Symbol.asyncDispose]();
  });

  test('that is restored without the standby is reported as a failure, and can be restored again', async (t) => {
    const folder = stateFolder(t);
    const backup = join(emptyFolder(t), 'mesh.backup');
    const made = await runProgram(['backup', 'create', '--data-dir', folder, '--to', backup]);
    assert.equal(made.code, 0, made.stderr);
    const store = await migratedDatabase(cluster);
    await using standby = await absentStandby(store);
    const fresh = keysOf(folder, t);
    rmSync(join(fresh, 'genesis.json'));
    const place = ['--backup', backup, '--data-dir', fresh, '--store', store];
    const planned = await runProgram(['restore', 'plan', '--backup', backup, '--json']);
    const { loss } = JSON.parse(planned.stdout);
    const apply = ['restore', 'apply', ...place, '--accept-loss', loss];

    await standby.goAway();
    const failed = await standby.canceling('commit', () => runProgram(apply, NO_LIMITS));
    assert.notEqual(failed.code, 0, failed.stdout);
    assert.match(failed.stderr, /has stopped waiting for its standby, which may lack the change/);
    await standby.comeBack();
    const restored = await runProgram(apply, NO_LIMITS);
    assert.equal(restored.code, 0, restored.stderr);
    await (await openPostgresqlStore(storeOptions(store))).close();
  });

  for (const { step, intoDatabase, isMarked, places } of [
    {
      step: 'complete',
      intoDatabase: true,
      isMarked: false,
      places: ({ from, to }: Places, failing: Failing): Places => ({
        from,
        to: receiving(to, ({ complete }) => ({ complete: failing(complete) })),
      }),
    },
    {
      step: 'publish',
      intoDatabase: true,
      isMarked: true,
      places: ({ from, to }: Places, failing: Failing): Places => ({
        from,
        to: receiving(to, ({ publish }) => ({ publish: failing(publish) })),
      }),
    },
    {
      step: 'retire',
      intoDatabase: false,
      isMarked: true,
      places: ({ from, to }: Places, failing: Failing): Places => ({
        from: holding(from, ({ retire }) => ({ retire: failing(retire) })),
        to,
      }),
    },
  ]) {
    test(`whose move loses the standby at its step "${step}" is reported as moved only once the standby has it`, async (t) => {
      const folder = stateFolder(t);
      const store = await migratedDatabase(cluster);
      const there = {
        from: await placeOf(`lmdb:${folder}`, folder),
        to: await placeOf(store, folder),
      };
      if (!intoDatabase) await moveState({ ...ORDER, ...there });
      const empty = keysOf(folder, t);
      const back = { from: there.to, to: await placeOf(`lmdb:${empty}`, folder) };
      const order = { ...ORDER, ...(intoDatabase ? there : back) };
      await using standby = await absentStandby(store);

      const failing: Failing =
        (work) =>
        async (...given) => {
          await standby.goAway();
          return standby.canceling('commit', () => work(...given));
        };
      await assert.rejects(moveState({ ...order, ...places(order, failing) }), NOT_REPLICATED);
      assert.equal(await isMoved(order), isMarked);
      if (isMarked) {
        const again = standby.canceling('commit', () => moveState(order));
        await assert.rejects(again, NOT_REPLICATED);
      }
      await standby.comeBack();
      await moveState(order);
      const opened = intoDatabase
        ? await openPostgresqlStore(storeOptions(store))
        : openLmdbStore(empty);
      await opened.close();
    });
  }
});

/** Makes the standby go away before the work, which then stops waiting for it. */
type Failing = <Given extends readonly unknown[]>(
  work: (...given: Given) => Promise<void>,
) => (...given: Given) => Promise<void>;

const NOT_REPLICATED = /has stopped waiting for its standby/;

const ORDER = {
  verify: verifySignature,
  runtime: systemRuntime,
  onStep: () => undefined,
};

/** Whether the old place says that its state continues elsewhere, whether or not the standby has that. */
async function isMoved({ from }: Places): Promise<boolean> {
  const source = await from.openSource();
  try {
    return metaValue(source.meta, 'moved') !== null;
  } finally {
    await source.close();
  }
}

interface Places {
  readonly from: Place;
  readonly to: Place;
}

/** For a suite: gives each test a folder of its own with the state of the same stopped authority. */
function stoppedStates(): (t: TestContext) => string {
  let stopped: Awaited<ReturnType<typeof networkFolder>>;
  before(async () => {
    stopped = await networkFolder('alpha');
    await using na = await startTestAuthority({ dataDir: stopped.path });
    await joinedNode(na);
  });
  after(() => stopped[Symbol.asyncDispose]());
  return (t) => {
    const path = emptyFolder(t);
    cpSync(stopped.path, path, { recursive: true });
    return path;
  };
}

/** The place with other steps of its receiver. */
function receiving(
  place: Place,
  changed: (receiver: StateReceiver) => Partial<StateReceiver>,
): Place {
  return {
    ...place,
    async receive() {
      const receiver = await place.receive();
      return { ...receiver, ...changed(receiver) };
    },
  };
}

/** The place with other steps of the state that it holds. */
function holding(place: Place, changed: (held: HeldState) => Partial<HeldState>): Place {
  return {
    ...place,
    async hold() {
      const held = await place.hold();
      return { ...held, ...changed(held) };
    },
  };
}
