/**
 * A state moves from a data folder to PostgreSQL and back while the service runs, and is only ever served from one of
 * them.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { after, before, suite, type TestContext, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { placeOf } from '../src/cli/move-places.ts';
import {
  abandonMove,
  checkMove,
  type MoveStep,
  moveState,
  type Place,
} from '../src/maintenance/move/move.ts';
import { readAuditEntries } from '../src/store/lmdb/source.ts';
import { openLmdbStore } from '../src/store/lmdb/store.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { connectToPrimary, disconnect } from '../src/store/postgresql/connect.ts';
import { followerSession } from '../src/store/postgresql/session-name.ts';
import { openPostgresqlStore } from '../src/store/postgresql/store.ts';
import type { Store } from '../src/store/store.ts';
import type { StateReceiver } from '../src/store/stream/ports.ts';
import { startTestAuthority } from './support/authority.ts';
import {
  type ChildServer,
  NO_LIMITS,
  runProgram,
  startChildServer,
} from './support/child-server.ts';
import { networkFolder } from './support/folders.ts';
import {
  begunMove,
  emptyFolder,
  enough,
  judge,
  keysOf,
  listener,
  runMove,
  startWorkload,
} from './support/moves.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase, storeOptions } from './support/postgresql-store.ts';
import {
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  operate,
  operatorRequest,
  outcome,
  type SignedRequest,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import { openTerminal, programLine } from './support/terminal.ts';
import { LMDB_ONLY } from './support/test-stores.ts';

interface Places {
  readonly from: Place;
  readonly to: Place;
}

interface Death {
  readonly when: string;
  /** The places, changed so that a move dies at this point. */
  at(places: Places): Partial<Places>;
  /** Whether the old place has been given up by then. */
  readonly isMarked: boolean;
  /** Whether the new place can be served from by then. */
  readonly isPublished: boolean;
}

const DEATHS: readonly Death[] = [
  {
    when: 'before anything is copied',
    at: ({ to }) => ({ to: receiving(to, () => ({ take: dying })) }),
    isMarked: false,
    isPublished: false,
  },
  {
    when: 'when everything is copied',
    at: ({ from }) => ({ from: { ...from, hold: dying } }),
    isMarked: false,
    isPublished: false,
  },
  {
    when: 'before the old place is given up',
    at: ({ to }) => ({
      to: receiving(to, ({ complete }) => ({
        complete: (...last) => complete(...last).then(dying),
      })),
    }),
    isMarked: false,
    isPublished: false,
  },
  {
    when: 'when the old place is given up',
    at: ({ to }) => ({ to: receiving(to, () => ({ publish: dying })) }),
    isMarked: true,
    isPublished: false,
  },
  {
    when: 'when the new place is let go of',
    at: ({ to }) => ({
      to: receiving(to, ({ publish }) => ({
        publish: (isClosed) => publish(isClosed).then(dying),
      })),
    }),
    isMarked: true,
    isPublished: true,
  },
];

function dying(): Promise<never> {
  return Promise.reject(new Error('It dies here'));
}

function receiving(
  place: Place,
  changed: (receiver: StateReceiver) => Partial<StateReceiver>,
): Place {
  return {
    ...place,
    async receive() {
      const receiver = await place.receive();
      return { ...receiver, arrival: receiver.arrival, ...changed(receiver) };
    },
  };
}

suite('a move', { concurrency: false, ...LMDB_ONLY }, () => {
  let cluster: TestCluster;
  /** A folder with the state of a stopped authority, and a node that it knows. */
  let stopped: Awaited<ReturnType<typeof networkFolder>>;
  let node: TestNode;

  before(async () => {
    cluster = await startCluster();
    stopped = await networkFolder('alpha');
    await using na = await startTestAuthority({ dataDir: stopped.path });
    node = await joinedNode(na);
  });
  after(async () => {
    await stopped[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  /** A separate folder for each test. */
  function stateFolder(t: TestContext): string {
    const path = emptyFolder(t);
    cpSync(stopped.path, path, { recursive: true });
    return path;
  }

  test('during the service copies everything there and back once a person, or --yes, has agreed, and leaves one state that can be served', async (t) => {
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
    assert.match(unasked.stderr, /add --yes, or use --dry-run to see what would be moved\n$/);
    assert.deepEqual([dry.code, dry.stdout.split(':')[0]], [0, 'To be moved']);
    await using declined = openTerminal(programLine(move), { columns: 400 });
    await declined.until(/will be asked to stop, and the state there can never be opened again\./);
    await declined.until(/Move it\? \[y\/N\] /);
    declined.type('\r');
    assert.equal(await declined.ended, 4);
    assert.match(declined.shown(), /Nothing was moved/);
    assert.equal((await get(first.na, '/readyz')).status, 200, 'it serves as before');

    const load = startWorkload(first);
    await enough(load, 5);
    const spent = await spentRequests(first);
    const [revoked = { certId: '' }] = load.nodes.keys();
    await operate(first.na, '/admin/revoke', { cert_id: revoked.certId, reason: 'superseded' });
    await using terminal = openTerminal(programLine(move), { columns: 400 });
    await terminal.until(/Move it\? \[y\/N\] /);
    terminal.type('y\r');
    assert.equal(await terminal.ended, 0, terminal.shown());
    for (const said of PROGRESS) assert.match(terminal.shown(), said);
    assert.equal((await first.ended).code, 0);
    await load.stop();
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
    const again = await runMove({ from: store, to: `lmdb:${back}`, dataDir: folder.path }, [
      '--json',
    ]);
    assert.equal(again.code, 0, again.stderr);
    const { moved, from, to, revision, pause_ms: pause } = JSON.parse(again.stdout);
    assert.deepEqual([moved, from, to], [true, store, `lmdb:${back}`]);
    assert.ok(revision > 0 && pause > 0);
    assert.equal((await second.ended).code, 0);
    await loadThere.stop();
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
    assert.equal(ends[1]?.details.revision, revision - 1);
    assert.deepEqual([...readAuditEntries(folder.path)].at(-1), ends[0]);
  });

  test('that was killed and resumed leaves nothing of its first attempt in a waiting instance, which carries out what was requested meanwhile', async () => {
    await using folder = await networkFolder('alpha');
    const store = await migratedDatabase(cluster);
    let old = await startChildServer(folder.path);
    const revoked = await joinedNode(old.na);
    const spent = await spentRequests(old);
    // It cannot hand over until it continues.
    old.process.kill('SIGSTOP');
    const move = { from: `lmdb:${folder.path}`, to: store, dataDir: folder.path };
    const dying = begunMove(move);
    await dying.written('Asked pid');
    const { onSpawn, written } = listener();
    await using second = await startChildServer(folder.path, {
      args: ['--store', store],
      environment: { ...NO_LIMITS, MESH_LINK: '127.0.0.1:0', MESH_HOLD_MS: '60000' },
      onSpawn,
    });
    await written('The standby state is ready');
    const { status, body } = await get(second.na, '/readyz');
    const { role, moving } = body.error.details;
    assert.deepEqual([status, role, moving], [503, 'follower', true]);
    dying.kill();
    await dying.ended;
    old.process.kill('SIGCONT');
    await old.ended;

    old = await startChildServer(folder.path);
    const reason = { cert_id: revoked.certId, reason: 'superseded' };
    await operate(old.na, '/admin/revoke', reason);
    const joined = await joinedNode(old.na);
    const spentLater = await spentRequests(old);
    const resumed = begunMove(move, ['--resume']);
    await resumed.written('Copied');
    const asked = operate(second.na, '/admin/invite');
    const { code, stderr } = await resumed.ended;
    assert.equal(code, 0, stderr);
    assert.equal((await asked).status, 200);
    const later = (await get(second.na, '/readyz')).body;
    assert.deepEqual([later.role, later.moving], ['writer', undefined]);
    assert.equal((await heartbeat(second.na, revoked)).status, 403);
    assert.equal((await heartbeat(second.na, joined)).status, 200);
    for (const requests of [spent, spentLater]) await assertReplaysRefused(second, requests);
    const log = (await second.end('SIGTERM')).stderr;
    assert.match(log, /the move by pid \d+ on \S+ is the writer; this instance is waiting/);
    assert.match(
      log,
      /A state is being moved into or out of the database; this instance waits until/,
    );
    assert.match(log, /The standby state is ready, from revision [1-9]/);
  });

  test('that was abandoned can be attempted again, and those who waited for it serve no other state', async (t) => {
    const folder = stateFolder(t);
    const elsewhere = keysOf(folder, t);
    const store = await migratedDatabase(cluster);
    const { order, die, ended } = await waitingMove(`lmdb:${folder}`, store, folder);
    const { onSpawn, written } = listener();
    await using waiting = await startChildServer(elsewhere, { args: ['--store', store], onSpawn });
    await written('The standby state is ready');
    die();
    await assert.rejects(ended, /It dies here/);
    const { client } = await connectToPrimary(parseStoreAddress(store, {}), { name: 'reader' });
    await client.query('begin isolation level repeatable read');
    const rowsRead = async () => (await client.query('select from mesh_na.subjects')).rowCount ?? 0;
    assert.ok((await rowsRead()) > 0);
    await abandonMove(order.from, order.to);
    assert.ok((await rowsRead()) > 0, 'a reader has what it began with');
    await client.end();

    assert.equal((await waiting.ended).code, 1);
    await written('was in use by the network "alpha", but the database holds no state');
    await assert.rejects(
      startTestAuthority({ dataDir: elsewhere, flags: { store } }),
      /the database holds no state/,
    );
    assert.equal((await moveState(order)).facts.isClosed, true);
    await using second = await startTestAuthority({ dataDir: elsewhere, flags: { store } });
    assert.equal((await heartbeat(second, node)).status, 200);
  });

  test('requests no handover before the waiting instances have read what was copied', async (t) => {
    const folder = stateFolder(t);
    const store = await migratedDatabase(cluster);
    const name = { name: 'pid 1 on host', revision: null };
    const address = parseStoreAddress(store, {});
    const { client } = await connectToPrimary(address, { name: followerSession(name) });
    const order = await orderOf(`lmdb:${folder}`, store, folder);
    const steps: string[] = [];
    let isAwaited: () => void = () => undefined;
    const awaited = new Promise<void>((resolve) => {
      isAwaited = resolve;
    });
    const moved = moveState({
      ...order,
      onStep(step) {
        steps.push(step.name);
        if (step.name === 'awaited') isAwaited();
      },
    });

    await awaited;
    assert.ok(!steps.includes('handed-over'));
    const read = followerSession({ ...name, revision: 1_000_000 });
    await client.query(`set application_name = ${client.escapeLiteral(read)}`);
    await moved;
    assert.ok(steps.indexOf('awaited') < steps.indexOf('handed-over'), steps.join());
    await disconnect(client);
  });

  test('continues to copy until a person has stopped a process that it cannot ask', async (t) => {
    const folder = stateFolder(t);
    const order = await orderOf(`lmdb:${folder}`, await migratedDatabase(cluster), folder);
    await using old = await startTestAuthority({ dataDir: folder });
    const from = { ...order.from, ask: async () => ({ holder: 'pid 1 on host', isAsked: false }) };
    let joined: Promise<TestNode> | null = null;
    let isStopping = false;
    const seen: MoveStep[] = [];
    await moveState({
      ...order,
      from,
      onStep(step) {
        seen.push(step);
        if (step.name === 'asked') joined = joinedNode(old);
        else if (joined !== null && !isStopping && step.name === 'compared' && step.rows > 0) {
          isStopping = true;
          void joined.then(() => old.stop());
        }
      },
    });
    const asked = seen.find(({ name }) => name === 'asked');
    assert.deepEqual(asked, { name: 'asked', holder: 'pid 1 on host', isAsked: false });
    assert.ok(isStopping, 'what was written meanwhile has been copied before the end');
  });

  test('is awaited by a service on the new folder, which serves once it has arrived, and stops or ends with 3 before', async (t) => {
    const folder = stateFolder(t);
    const back = keysOf(folder, t);
    const store = await migratedDatabase(cluster);
    await moveState(await orderOf(`lmdb:${folder}`, store, folder));
    const { die, ended } = await waitingMove(store, `lmdb:${back}`, folder);
    const [stopping, orphaned] = [begunService(back), begunService(back)];
    await Promise.all([stopping, orphaned].map(({ written }) => written(WAITS_FOR_STATE)));
    stopping.kill('SIGTERM');
    assert.equal((await stopping.ended).code, 0);
    die();
    await assert.rejects(ended, /It dies here/);
    const { code: refusal, stderr: reason } = await orphaned.ended;
    assert.equal(refusal, 3);
    assert.match(reason, /if that was interrupted, continue it with mesh-na store move --resume/);

    const resumed = await waitingMove(store, `lmdb:${back}`, folder, true);
    const { onSpawn, written } = listener();
    const starting = startChildServer(back, { onSpawn });
    await written(WAITS_FOR_STATE);
    resumed.proceed();
    await resumed.ended;
    await using third = await starting;
    assert.equal((await heartbeat(third.na, node)).status, 200);
  });

  suite('that is killed', { concurrency: 3 }, () => {
    for (const death of DEATHS) {
      test(`${death.when} is served from one place or none, until it is resumed or abandoned`, async (t) => {
        const folder = stateFolder(t);
        const back = keysOf(folder, t);
        const store = await migratedDatabase(cluster);
        const places = [
          { at: `lmdb:${folder}`, open: async () => openLmdbStore(folder) },
          { at: store, open: () => openPostgresqlStore(storeOptions(store)) },
          { at: `lmdb:${back}`, open: async () => openLmdbStore(back) },
        ] as const;
        await dieAndResume(death, places[0], places[1], back);
        await dieAndResume(death, places[1], places[2], folder);
      });
    }
  });
});

interface OpenedPlace {
  readonly at: string;
  open(): Promise<Store>;
}

async function dieAndResume(
  death: Death,
  old: OpenedPlace,
  next: OpenedPlace,
  dataDir: string,
): Promise<void> {
  const order = await orderOf(old.at, next.at, dataDir);
  const before = await checkMove(order.from, verifySignature);

  await assert.rejects(moveState({ ...order, ...death.at(order) }), /It dies here/);
  if (death.isMarked) {
    await assert.rejects(old.open(), /was moved to/);
    await assert.rejects(abandonMove(order.from, order.to), /was moved to .* --resume/);
    await assert.rejects(moveState(order), /was moved to/);
  } else {
    await (await old.open()).close();
    await assert.rejects(moveState(order), /continue it with --resume/);
  }
  if (death.isPublished) await (await next.open()).close();
  else await assert.rejects(next.open(), /being moved into/);

  const { facts, tables, pause } = await moveState({ ...order, resumes: true });
  assert.equal(pause === null, death.isMarked, 'who has ended the old place knows how long');
  assert.equal(facts.revision, before.facts.revision + 1);
  assert.deepEqual(
    { ...tables, audit: tables.audit.rows },
    { ...before.tables, audit: before.tables.audit.rows + 1 },
  );
  await assert.rejects(old.open(), /was moved to/);
  await (await next.open()).close();
}

const WAITS_FOR_STATE = 'waiting until the move is complete';

/** What a move writes to standard error. */
const PROGRESS = [
  /Copied \d+ rows in /,
  /Both places have the same state at revision \d+; the check took /,
  /Asked pid \d+ on \S+ to stop and hand over/,
  /Handed over: nobody could serve the state for /,
  /Moved: revision \d+, rows: subjects \d+/,
];

async function orderOf(from: string, to: string, dataDir: string, resumes = false) {
  return {
    from: await placeOf(from, dataDir),
    to: await placeOf(to, dataDir),
    verify: verifySignature,
    runtime: systemRuntime,
    resumes,
    quickCheckMs: 60_000,
    onStep: (_step: MoveStep) => undefined,
  };
}

/** A move that has copied everything, and waits for the old place until `proceed` or `die` is called. */
async function waitingMove(from: string, to: string, dataDir: string, resumes = false) {
  const order = await orderOf(from, to, dataDir, resumes);
  let proceed: () => void = () => undefined;
  let die: () => void = () => undefined;
  const turn = new Promise<void>((resolve, reject) => {
    proceed = resolve;
    die = () => reject(new Error('It dies here'));
  });
  let holds: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    holds = resolve;
  });
  const waiting = {
    ...order.from,
    async hold() {
      holds();
      await turn;
      return order.from.hold();
    },
  };
  const ended = moveState({ ...order, from: waiting });
  await Promise.race([held, ended]);
  return { order, proceed, die, ended };
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

/** A start in progress. */
function begunService(dataDir: string) {
  const heard = listener();
  const command = ['serve', '--data-dir', dataDir, '--port', '0', '--json'];
  return { ended: runProgram(command, NO_LIMITS, heard.onSpawn), ...heard };
}
