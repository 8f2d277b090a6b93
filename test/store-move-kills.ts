/**
 * `npm run test:longer -- move-kills`: moves in both directions that are killed at random instants and repeated.
 * `MESH_TEST_MOVE_KILLS` sets the number of kills in each direction.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { after, before, suite, type TestContext, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { placeOf } from '../src/cli/state/store.ts';
import { checkMove, moveState } from '../src/maintenance/move/move.ts';
import { metaValue } from '../src/store/meta-rows.ts';
import { startChildServer } from './support/child-server.ts';
import { networkFolder } from './support/folders.ts';
import {
  begunMove,
  emptyFolder,
  enough,
  judge,
  keysOf,
  type MoveArguments,
  runMove,
  startWorkload,
  type Workload,
} from './support/moves.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase } from './support/postgresql-store.ts';

/** Output after which the move is killed; the old place is closed between the last two kinds. */
const MOMENTS = ['', 'Copied', 'Read both', 'Read both', 'Published'];
const LATEST_MS = 50;
const KILLS = Number(process.env.MESH_TEST_MOVE_KILLS ?? 15);

suite('a move', { concurrency: false }, () => {
  let cluster: TestCluster;
  /** A folder with the state of a stopped authority, and what its clients know. */
  let stopped: Awaited<ReturnType<typeof networkFolder>>;
  let load: Workload;

  before(async () => {
    cluster = await startCluster();
    stopped = await networkFolder('alpha');
    await using server = await startChildServer(stopped.path);
    load = startWorkload(server);
    await enough(load, 20);
    await load.stop();
    await server.end('SIGTERM');
  });
  after(async () => {
    await stopped[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  for (const direction of ['into a database', 'into a data folder'] as const) {
    test(`${direction} that is killed at any instant is finished by its repetition, and nothing is lost`, async (t) => {
      const found = new Map<Found, number>();
      for (let kill = 0; kill < KILLS; kill += 1) {
        const move = await freshMove(direction, t);
        const before = await checkMove(
          await placeOf(move.from, ''),
          verifySignature,
          systemRuntime,
        );
        const moving = begunMove(move);
        await Promise.race([
          moving.written(MOMENTS[kill % MOMENTS.length] as string),
          moving.ended,
        ]);
        await new Promise((resolve) => setTimeout(resolve, Math.random() * LATEST_MS));
        moving.kill();
        const { code } = await moving.ended;
        const state = code === 0 ? 'ended' : await stateOf(move);
        found.set(state, (found.get(state) ?? 0) + 1);
        const { code: again, stderr } = await runMove(move);
        assert.equal(again, 0, stderr);
        assert.equal(await stateOf(move), 'published');
        const there = await checkMove(await placeOf(move.to, ''), verifySignature, systemRuntime);
        assert.equal(there.facts.revision, before.facts.revision + 1);
        assert.equal(there.tables.subjects.sha256, before.tables.subjects.sha256);
        if (kill < KILLS - 1) continue;
        await using last = await startChildServer(
          direction === 'into a database' ? move.dataDir : move.to.slice('lmdb:'.length),
          { args: direction === 'into a database' ? ['--store', move.to] : [] },
        );
        const { known, repeated } = await judge(last, load);
        assert.deepEqual([...known], [200]);
        assert.ok(!repeated.has(200), 'no heartbeat is accepted again');
      }
      t.diagnostic([...found].map(([state, times]) => `${state}: ${times}`).join(', '));
    });
  }

  /** A move of a copy of the state to a place without one. */
  async function freshMove(
    direction: 'into a database' | 'into a data folder',
    t: TestContext,
  ): Promise<MoveArguments> {
    const folder = emptyFolder(t);
    cpSync(stopped.path, folder, { recursive: true });
    const store = await migratedDatabase(cluster);
    const there = { from: `lmdb:${folder}`, to: store, dataDir: folder };
    if (direction === 'into a database') return there;
    const [from, to] = [await placeOf(there.from, folder), await placeOf(store, folder)];
    await moveState({
      from,
      to,
      verify: verifySignature,
      runtime: systemRuntime,
      onStep: () => undefined,
    });
    return { from: store, to: `lmdb:${keysOf(folder, t)}`, dataDir: folder };
  }
});

/** How far a move has come: the old place can be served from, or no place, or the new one. */
type Found = 'unchanged' | 'marked' | 'published' | 'ended';

async function stateOf(move: MoveArguments): Promise<Found> {
  const [from, to] = [await placeOf(move.from, move.dataDir), await placeOf(move.to, move.dataDir)];
  const source = await from.openSource();
  const isMarked = metaValue(source.meta, 'moved') !== null;
  await source.close();
  const isPublished = await to.isServable();
  assert.ok(isMarked || !isPublished, 'both places can be served from');
  if (isPublished) return 'published';
  return isMarked ? 'marked' : 'unchanged';
}
