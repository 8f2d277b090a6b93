/**
 * `npm run test:move-kills`: moves in both directions that are killed at random moments and resumed, while clients
 * continue to work. `MESH_TEST_MOVE_KILLS` sets the number of kills of each move.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { type ChildServer, startChildServer } from './support/child-server.ts';
import { networkFolder } from './support/folders.ts';
import { begunMove, enough, judge, keysOf, startWorkload } from './support/moves.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';

/** Output after which the move is killed. */
const MOMENTS = ['Copied', 'Asked', 'Handed over', '', 'Both places', 'Asked'];
const KILLS = Number(process.env.MESH_TEST_MOVE_KILLS ?? 20);

suite('a move', { concurrency: false }, () => {
  let cluster: TestCluster;

  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster[Symbol.asyncDispose]());

  for (const direction of ['into a database', 'into a data folder'] as const) {
    test(`${direction} that is killed at any moment can be resumed, and nothing acknowledged is lost`, async (t) => {
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
        const moving = begunMove(move, kill === 0 ? [] : ['--resume']);
        const moment = MOMENTS[kill % MOMENTS.length] as string;
        await Promise.race([moving.written(moment), moving.ended]);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 60));
        moving.kill();
        hasEnded = (await moving.ended).code === 0;
        if (hasEnded || old === null || !(await hasStopped(old))) continue;
        // Its supervisor starts it again: it either serves as before, or names the new place.
        old = await serveOld().catch((cause: Error) => {
          assert.match(cause.message, /was moved to/);
          return null;
        });
        if (old !== null) load.goTo(old);
      }
      if (!hasEnded) {
        const { code, stderr } = await begunMove(move, ['--resume']).ended;
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

/** Whether the server was asked to stop and has done so. */
async function hasStopped({ ended, process }: ChildServer): Promise<boolean> {
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500))]);
  return process.exitCode !== null;
}
