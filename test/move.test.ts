/** A state moves from a data folder to PostgreSQL and back, and is served by one of them alone. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { type HeldPlace, placeOf } from '../src/cli/store-address.ts';
import { verifySignature } from '../src/crypto/ed25519.ts';
import { moveState } from '../src/move/move.ts';
import { systemRuntime } from '../src/runtime.ts';
import { startTestAuthority } from './support/authority.ts';
import { testClock } from './support/clock.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';
import { get, heartbeat, joinedNode, operate } from './support/requests.ts';

/** Whole suites on PostgreSQL give each folder a database of its own. */
const isFolder = process.env.MESH_TEST_STORE !== 'postgresql';

suite('a move', { concurrency: false, skip: !isFolder }, () => {
  const clock = testClock();
  const { folder: dataDir } = makeNetworkFolder();
  const back = mkdtempSync(join(tmpdir(), 'mesh-move-'));
  let cluster: TestCluster;
  let store = '';

  before(async () => {
    cluster = await startCluster();
    store = await migratedDatabase(cluster);
  });
  after(async () => {
    await cluster[Symbol.asyncDispose]();
    for (const folder of [dataDir, back]) rmSync(folder, { recursive: true, force: true });
  });

  async function move(from: HeldPlace, to: HeldPlace, resumes = false) {
    const held = await from.hold();
    return moveState({ from, to, held, verify: verifySignature, runtime: systemRuntime, resumes });
  }

  test('carries every row there and back, and leaves one state that can be served', async () => {
    const first = await startTestAuthority({ dataDir, clock });
    const nodes = [await joinedNode(first), await joinedNode(first)] as const;
    await operate(first, '/admin/revoke', { cert_id: nodes[0].certId, reason: 'superseded' });
    const crl = (await get(first, '/crl')).text;
    const folder = await placeOf(`lmdb:${dataDir}`, dataDir);
    const database = await placeOf(store, dataDir);
    await assert.rejects(move(folder, database), /in use by another process/);
    await first.stop();

    const failing: HeldPlace = {
      ...database,
      async openTarget() {
        const target = await database.openTarget();
        const finish = () => Promise.reject(new Error('The connection is lost'));
        return { ...target, finish };
      },
    };
    await assert.rejects(move(folder, failing), /The connection is lost/);
    await (await startTestAuthority({ dataDir, clock })).stop();

    const { facts } = await move(folder, database);
    assert.equal(facts.isClosed, true);
    await assert.rejects(startTestAuthority({ dataDir, clock }), /was moved to postgresql:/);
    const second = await startTestAuthority({ dataDir, clock, flags: { store } });
    assert.equal((await get(second, '/crl')).text, crl);
    assert.equal((await heartbeat(second, nodes[1])).status, 200);
    assert.equal((await heartbeat(second, nodes[0])).status, 403);
    await second.stop();

    await move(database, await placeOf(`lmdb:${back}`, back));
    for (const name of ['keys', 'genesis.json', 'mesh-na.json']) {
      cpSync(join(dataDir, name), join(back, name), { recursive: true });
    }
    const third = await startTestAuthority({ dataDir: back, clock });
    assert.equal((await get(third, '/crl')).text, crl);
    await third.stop();
    await assert.rejects(
      startTestAuthority({ dataDir, clock, flags: { store } }),
      /was moved to lmdb/,
    );
  });
});
