/** A state that is moved or restored counts as there only once the standby of its database has it. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { placeOf } from '../src/cli/state/store.ts';
import { moveState } from '../src/maintenance/move/move.ts';
import { openLmdbStore } from '../src/store/lmdb/store.ts';
import { metaValue } from '../src/store/meta-rows.ts';
import { openPostgresqlStore } from '../src/store/postgresql/store.ts';
import { NO_LIMITS, runProgram } from './support/child-server.ts';
import { holding, type Places, receiving, stoppedStates } from './support/moved-states.ts';
import { emptyFolder, keysOf } from './support/moves.ts';
import { startCluster, type TestCluster } from './support/postgresql.ts';
import { migratedDatabase, storeOptions } from './support/postgresql-store.ts';
import { absentStandby } from './support/standby-waits.ts';
import { LMDB_ONLY } from './support/test-stores.ts';

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
