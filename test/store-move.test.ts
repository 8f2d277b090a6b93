/** A state moves from a data folder to PostgreSQL and back beside the service, and is served by one of them alone. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { placeOf } from '../src/cli/move-places.ts';
import { verifySignature } from '../src/crypto/ed25519.ts';
import { abandonMove, moveState } from '../src/move/move.ts';
import type { Place } from '../src/move/ports.ts';
import { systemRuntime } from '../src/runtime.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { connectToPrimary, disconnect } from '../src/store/postgresql/connect.ts';
import { followerSession } from '../src/store/postgresql/session-name.ts';
import {
  type ChildServer,
  NO_LIMITS,
  runProgram,
  startChildServer,
} from './support/child-server.ts';
import { networkFolder } from './support/folders.ts';
import {
  judge,
  type MoveArguments,
  runMove,
  startWorkload,
  type Workload,
} from './support/moves.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
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
} from './support/requests.ts';
import { openTerminal, programLine } from './support/terminal.ts';
import { LMDB_ONLY } from './support/test-stores.ts';

suite('a move', { concurrency: false, ...LMDB_ONLY }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster[Symbol.asyncDispose]());

  test('beside the service carries everything there and back, and leaves one state that can be served', async () => {
    await using folder = await networkFolder('alpha');
    const back = mkdtempSync(join(tmpdir(), 'mesh-move-'));
    const store = await migratedDatabase(cluster);
    const here = `lmdb:${folder.path}`;

    await using first = await startChildServer(folder.path);
    const load = startWorkload(first);
    await enough(load, 20);
    const [revoked = { certId: '' }] = load.nodes.keys();
    await operate(first.na, '/admin/revoke', { cert_id: revoked.certId, reason: 'superseded' });
    const there = await runMove({ from: here, to: store, dataDir: folder.path }, ['--json']);
    assert.equal(there.code, 0, there.stderr);
    assert.equal((await first.ended).code, 0);
    await load.stop();
    const moved = JSON.parse(there.stdout);
    assert.equal(moved.moved, true);

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
    const crl = (await get(second.na, '/crl')).text;

    const loadThere = startWorkload(second);
    await enough(loadThere, 10);
    const again = await runMove({ from: store, to: `lmdb:${back}`, dataDir: folder.path }, [
      '--json',
    ]);
    assert.equal(again.code, 0, again.stderr);
    assert.equal((await second.ended).code, 0);
    await loadThere.stop();
    for (const name of ['keys', 'genesis.json', 'mesh-na.json']) {
      cpSync(join(folder.path, name), join(back, name), { recursive: true });
    }
    const refusedThere = await runProgram([...args, '--store', store]);
    assert.equal(refusedThere.code, 3);
    assert.match(refusedThere.stderr, /was moved to lmdb:/);

    await using third = await startChildServer(back);
    assert.deepEqual([...(await judge(third, loadThere)).known], [200]);
    assert.deepEqual([...(await judge(third, load)).known].toSorted(), [200, 403]);
    assert.equal((await get(third.na, '/crl')).text, crl);
    rmSync(back, { recursive: true, force: true });
  });

  test('stops nobody unless a person at a terminal, or --yes, has said so', async () => {
    await using folder = await networkFolder('alpha');
    const store = await migratedDatabase(cluster);
    await using served = await startChildServer(folder.path);
    const places = ['--from', `lmdb:${folder.path}`, '--to', store, '--data-dir', folder.path];
    const move = ['store', 'move', ...places];

    const unasked = await runProgram(move);
    assert.equal(unasked.code, 2);
    assert.match(unasked.stderr, /add --yes, or see what would be moved with --dry-run\n$/);
    const { code, stdout } = await runProgram([...move, '--dry-run']);
    assert.deepEqual([code, stdout.split(':')[0]], [0, 'To be moved']);
    for (const answer of ['no\r', '\r', '\x04']) {
      await using terminal = openTerminal(programLine(move), { columns: 400 });
      await terminal.until(/is asked to stop, and the state there is never opened again\./);
      await terminal.until(/Move it\? \[y\/N\] /);
      terminal.type(answer);
      assert.equal(await terminal.ended, 4);
      assert.match(terminal.shown(), /Nothing was moved/);
    }
    assert.equal((await get(served.na, '/readyz')).status, 200, 'it serves as before');

    await using terminal = openTerminal(programLine(move), { columns: 400 });
    await terminal.until(/Move it\? \[y\/N\] /);
    terminal.type('y\r');
    assert.equal(await terminal.ended, 0, terminal.shown());
    assert.equal((await served.ended).code, 0);
  });

  test('is waited for by an instance on the new database, which carries out what it was asked meanwhile', async () => {
    await using folder = await networkFolder('alpha');
    const store = await migratedDatabase(cluster);
    await using first = await startChildServer(folder.path);
    const load = startWorkload(first);
    await enough(load, 3);
    await load.stop();
    // It hands over only when it goes on.
    first.process.kill('SIGSTOP');
    const from = `lmdb:${folder.path}`;
    const moving = begun({ from, to: store, dataDir: folder.path });
    await moving.told('Asked pid');
    await using second = await startChildServer(folder.path, {
      args: ['--store', store],
      environment: { ...NO_LIMITS, MESH_LINK: '127.0.0.1:0', MESH_HOLD_MS: '60000' },
    });
    const { status, body } = await get(second.na, '/readyz');
    const { role, moving: waitsForMove } = body.error.details;
    assert.deepEqual([status, role, waitsForMove], [503, 'follower', true]);
    const asked = operate(second.na, '/admin/invite');
    first.process.kill('SIGCONT');
    const { code, stderr } = await moving.ended;
    assert.equal(code, 0, stderr);
    assert.equal((await asked).status, 200);
    const later = (await get(second.na, '/readyz')).body;
    assert.deepEqual([later.role, later.moving], ['writer', undefined]);
    assert.deepEqual([...(await judge(second, load)).known], [200]);
    const log = (await second.end('SIGTERM')).stderr;
    assert.match(log, /the move by pid \d+ on \S+ writes; this instance waits/);
    assert.match(log, /A state is being moved into the database, .* this instance waits until/);
    assert.match(log, /The state is kept ready, from revision [1-9]/);
  });

  test('that was interrupted and resumed leaves nothing of its first attempt in an instance that waits, and lets no request of then pass again', async () => {
    await using folder = await networkFolder('alpha');
    const store = await migratedDatabase(cluster);
    let old = await startChildServer(folder.path);
    const revoked = await joinedNode(old.na);
    const spent = await spentRequests(old);
    old.process.kill('SIGSTOP');
    const move = { from: `lmdb:${folder.path}`, to: store, dataDir: folder.path };
    const dying = begun(move);
    await dying.told('Asked pid');
    const { onSpawn, told } = listener();
    await using second = await startChildServer(folder.path, {
      args: ['--store', store],
      onSpawn,
    });
    await told('The state is kept ready');
    dying.kill();
    await dying.ended;
    old.process.kill('SIGCONT');
    await old.ended;

    old = await startChildServer(folder.path);
    const reason = { cert_id: revoked.certId, reason: 'superseded' };
    await operate(old.na, '/admin/revoke', reason);
    const joined = await joinedNode(old.na);
    const spentLater = await spentRequests(old);
    const { code, stderr } = await begun(move, ['--resume']).ended;
    assert.equal(code, 0, stderr);
    await ready(second);
    assert.equal((await heartbeat(second.na, revoked)).status, 403);
    assert.equal((await heartbeat(second.na, joined)).status, 200);
    for (const requests of [spent, spentLater]) {
      const again = await Promise.all(requests.map((request) => sendSigned(second.na, request)));
      assert.deepEqual(again.map(outcome), REPLAYED);
    }
  });

  test('that was abandoned can be attempted again, and whoever has waited for it serves no other state', async (t) => {
    await using folder = await networkFolder('alpha');
    const elsewhere = keysOf(folder.path, t);
    const store = await migratedDatabase(cluster);
    const serveThere = (onSpawn?: (child: ChildProcess) => void) =>
      startChildServer(elsewhere, { args: ['--store', store], ...(onSpawn && { onSpawn }) });
    const first = await startChildServer(folder.path);
    const node = await joinedNode(first.na);
    // It hands over only when it goes on.
    first.process.kill('SIGSTOP');
    const move = { from: `lmdb:${folder.path}`, to: store, dataDir: folder.path };
    const dying = begun(move);
    await dying.told('Asked pid');
    const { onSpawn, told } = listener();
    const waiting = await serveThere(onSpawn);
    await told('The state is kept ready');
    dying.kill();
    await dying.ended;
    const abandoned = await begun(move, ['--abandon']).ended;
    assert.equal(abandoned.code, 0, abandoned.stderr);

    const end = waiting.ended.then(({ code }) => code);
    const served = ready(waiting).then(
      () => 'it serves',
      () => end,
    );
    assert.equal(await Promise.race([end, served]), 1);
    await told('was in use by the network "alpha", but the database holds no state');
    await assert.rejects(serveThere(), /ended with 3: .*the database holds no state/);
    first.process.kill('SIGCONT');
    await first.ended;
    await using old = await startChildServer(folder.path);
    assert.equal((await heartbeat(old.na, node)).status, 200);
    const later = await joinedNode(old.na);
    const again = await begun(move).ended;
    assert.equal(again.code, 0, again.stderr);
    await using second = await serveThere();
    assert.equal((await heartbeat(second.na, node)).status, 200);
    assert.equal((await heartbeat(second.na, later)).status, 200);
  });

  test('asks nobody to hand over before the instances that wait have read what was copied', async () => {
    await using folder = await networkFolder('alpha');
    const store = await migratedDatabase(cluster);
    const first = await startChildServer(folder.path);
    await joinedNode(first.na);
    await first.end('SIGTERM');
    const address = parseStoreAddress(store, {});
    const name = { name: 'pid 1 on host', revision: null };
    const { client } = await connectToPrimary(address, { name: followerSession(name) });
    const steps: string[] = [];
    let isAwaited: () => void = () => undefined;
    const awaited = new Promise<void>((resolve) => {
      isAwaited = resolve;
    });
    const moved = moveState({
      from: await placeOf(`lmdb:${folder.path}`, folder.path),
      to: await placeOf(store, folder.path),
      verify: verifySignature,
      runtime: systemRuntime,
      resumes: false,
      quickCheckMs: 60_000,
      told(step) {
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

  test('is waited for by a service on the new folder, which serves when it has arrived, and stops or ends with 3 before', async (t) => {
    await using folder = await networkFolder('alpha');
    const store = await migratedDatabase(cluster);
    const back = keysOf(folder.path, t);
    const environment = { ...NO_LIMITS, MESH_LEASE_MS: '60000' };
    await using first = await startChildServer(folder.path, {
      args: ['--store', store],
      environment,
    });
    const load = startWorkload(first);
    await enough(load, 3);
    await load.stop();
    // It hands over only when it goes on.
    first.process.kill('SIGSTOP');
    const move = { from: store, to: `lmdb:${back}`, dataDir: folder.path };
    const dying = begun(move);
    await dying.told('Asked');
    const [stopped, orphaned] = [begunService(back), begunService(back)];
    await Promise.all([stopped, orphaned].map(({ told }) => told(WAITS_FOR_STATE)));
    stopped.kill('SIGTERM');
    assert.equal((await stopped.ended).code, 0);
    dying.kill();
    const { code: refusal, stderr: reason } = await orphaned.ended;
    assert.equal(refusal, 3);
    assert.match(reason, /if that was interrupted, repeat mesh-na store move with --resume/);

    const moving = begun(move, ['--resume']);
    await moving.told('Asked');
    const { onSpawn, told } = listener();
    const starting = startChildServer(back, { onSpawn });
    await told(WAITS_FOR_STATE);
    first.process.kill('SIGCONT');
    assert.equal((await moving.ended).code, 0);
    await using third = await starting;
    assert.deepEqual([...(await judge(third, load)).known], [200]);
  });

  test('that was interrupted is served from one place or none, until it is resumed or abandoned', async () => {
    await using folder = await networkFolder('alpha');
    const store = await migratedDatabase(cluster);
    const first = await startChildServer(folder.path);
    const node = await joinedNode(first.na);
    await first.end('SIGTERM');
    const from = await placeOf(`lmdb:${folder.path}`, folder.path);
    const to = await placeOf(store, folder.path);
    const order = {
      from,
      verify: verifySignature,
      runtime: systemRuntime,
      resumes: false,
      quickCheckMs: 0,
      told: () => undefined,
    };

    await assert.rejects(moveState({ ...order, to: dyingAt(to, 'complete') }), /It dies here/);
    await assert.rejects(moveState({ ...order, to }), /repeat this one with --resume/);
    await abandonMove(from, to);
    await assert.rejects(moveState({ ...order, to: dyingAt(to, 'publish') }), /It dies here/);

    await assert.rejects(abandonMove(from, to), /was moved to postgresql:.* --resume/);
    await assert.rejects(moveState({ ...order, to }), /was moved to postgresql:/);
    await assert.rejects(startChildServer(folder.path), /was moved to postgresql:/);
    await using second = await startChildServer(folder.path, { args: ['--store', store] });
    assert.equal((await get(second.na, '/readyz')).status, 503);

    const { facts, pause } = await moveState({ ...order, to, resumes: true });
    assert.equal(facts.isClosed, true);
    assert.equal(pause, null, 'it was another that gave the old place up');
    await ready(second);
    assert.equal((await heartbeat(second.na, node)).status, 200);
    const again = await moveState({ ...order, to, resumes: true });
    assert.equal(again.facts.revision, facts.revision, 'there is nothing left to do');
  });

  for (const direction of ['into a database', 'into a data folder'] as const) {
    test(`${direction} that is killed at any moment goes on, and nothing acknowledged is lost`, async (t) => {
      await using folder = await networkFolder('alpha');
      const elsewhere = keysOf(folder.path, t);
      const store = await migratedDatabase(cluster);
      const isThere = direction === 'into a database';
      const from = isThere ? `lmdb:${folder.path}` : store;
      const to = isThere ? store : `lmdb:${elsewhere}`;
      const serveOld = () =>
        startChildServer(folder.path, { args: isThere ? [] : ['--store', store] });
      const serveNew = () =>
        isThere
          ? startChildServer(elsewhere, { args: ['--store', store] })
          : startChildServer(elsewhere);
      const move = { from, to, dataDir: isThere ? elsewhere : folder.path };

      let old: ChildServer | null = await serveOld();
      const load = startWorkload(old);
      await enough(load, 5);
      let hasEnded = false;
      for (let kill = 0; kill < KILLS && !hasEnded; kill += 1) {
        const moving = begun(move, kill === 0 ? [] : ['--resume']);
        const moment = MOMENTS[kill % MOMENTS.length] as string;
        await Promise.race([moving.told(moment), moving.ended]);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
        moving.kill();
        hasEnded = (await moving.ended).code === 0;
        if (hasEnded || old === null || !(await hasStopped(old))) continue;
        // Its supervisor starts it again: it serves as before, or names the new place.
        old = await serveOld().catch((cause: Error) => {
          assert.match(cause.message, /was moved to/);
          return null;
        });
        if (old !== null) load.goTo(old);
      }
      if (!hasEnded) {
        const { code, stderr } = await begun(move, ['--resume']).ended;
        assert.equal(code, 0, stderr);
      }
      await load.stop();
      await assert.rejects(serveOld(), /was moved to/);
      await using last = await serveNew();
      const { known, repeated } = await judge(last, load);
      assert.deepEqual([...known], [200]);
      assert.ok(!repeated.has(200), 'no heartbeat is accepted again');
    });
  }
});

const WAITS_FOR_STATE = 'it is served here when it has arrived';

/** In whose wake the move is killed. */
const MOMENTS = ['Copied', 'Asked', 'Handed over', '', 'Both places', 'Asked'];
const KILLS = Number(process.env.MESH_TEST_MOVE_KILLS ?? 2);

/** What is answered to the requests below when they come again. */
const REPLAYED = ['403 invalid_invite_token', '401 node_auth_failed', '401 admin_auth_failed'];

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

/** A new folder of the same keys, without state. */
function keysOf(dataDir: string, t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'mesh-move-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  for (const name of ['keys', 'genesis.json', 'mesh-na.json']) {
    cpSync(join(dataDir, name), join(path, name), { recursive: true });
  }
  return path;
}

/** Whether the server was asked to stop, and has done so. */
async function hasStopped({ ended, process }: ChildServer): Promise<boolean> {
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500))]);
  return process.exitCode !== null;
}

/** A move that is under way. */
function begun(move: MoveArguments, more: readonly string[] = []) {
  const heard = listener();
  return { ended: runMove(move, more, heard.onSpawn), ...heard };
}

/** A start that is under way. */
function begunService(dataDir: string) {
  const heard = listener();
  const command = ['serve', '--data-dir', dataDir, '--port', '0', '--json'];
  return { ended: runProgram(command, NO_LIMITS, heard.onSpawn), ...heard };
}

/** Hears what a process says on standard error. */
function listener() {
  let running: ChildProcess | null = null;
  let text = '';
  return {
    onSpawn(child: ChildProcess) {
      running = child;
      child.stderr?.on('data', (piece: string) => {
        text += piece;
      });
    },
    kill: (signal: NodeJS.Signals = 'SIGKILL') => (running as ChildProcess | null)?.kill(signal),
    /** Resolves when it says this. */
    async told(what: string): Promise<void> {
      const deadline = Date.now() + 60_000;
      while (!text.includes(what)) {
        assert.ok(Date.now() < deadline, `It has said only: ${text}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
}

/** The place, as a move finds it that is killed before this step. */
function dyingAt(place: Place, step: 'complete' | 'publish'): Place {
  return {
    ...place,
    async receive() {
      const receiver = await place.receive();
      return { ...receiver, [step]: () => Promise.reject(new Error('It dies here')) };
    },
  };
}

async function ready({ na }: ChildServer): Promise<void> {
  const deadline = Date.now() + 60_000;
  while ((await get(na, '/readyz')).status !== 200) {
    assert.ok(Date.now() < deadline, 'It is not ready');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Until so many nodes are enrolled. */
async function enough({ nodes }: Workload, count: number): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (nodes.size < count) {
    assert.ok(Date.now() < deadline, `${nodes.size} nodes were enrolled`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
