/** What instances of one database say about themselves, and for how long it counts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemRuntime } from '../../src/base/runtime.ts';
import { parseStoreAddress } from '../../src/store/postgresql/address.ts';
import type { LeaseClock } from '../../src/store/postgresql/clocks.ts';
import { keepInstanceRow, type OwnRow } from '../../src/store/postgresql/instances.ts';
import { readStatus } from '../../src/store/postgresql/status.ts';
import { sharedCluster } from '../support/shared-cluster.ts';
import { until } from '../support/until.ts';

const cluster = await sharedCluster();

test('an instance is seen with what it says, until it ends or is silent for three seconds', async () => {
  const url = await cluster.createStore();
  const database = new URL(url).pathname.slice(1);
  const address = parseStoreAddress(url, {});
  let own: OwnRow = { isActive: false, revision: null, lag: null, nextKey: null };
  const first = keepRow(1, () => ({ isActive: true, revision: 9, lag: 0, nextKey: 'k' }));
  const second = keepRow(2, () => own);
  function keepRow(number: number, said: () => OwnRow) {
    return keepInstanceRow({
      address,
      leaseMs: 1500,
      clock: HASTY,
      id: `00000000-0000-4000-8000-00000000000${number}`,
      name: `pid ${number}`,
      link: number === 1 ? '127.0.0.1:1' : null,
      own: said,
    });
  }
  const shown = async () =>
    (await readStatus(address)).contents?.standbys.map(({ name, lag_revisions: lag }) => [
      name,
      lag,
    ]);

  await until(async () => first.others().length === 1 && second.others().length === 1);
  const { silent, ...seen } = second.others()[0] ?? { silent: Number.NaN };
  assert.deepEqual(seen, {
    id: '00000000-0000-4000-8000-000000000001',
    name: 'pid 1',
    address: '127.0.0.1:1',
    isActive: true,
    revision: 9,
    lag: 0,
    nextKey: 'k',
  });
  assert.ok(silent >= 0 && silent < 3, `${silent}`);
  assert.deepEqual(await shown(), [['pid 2', null]], 'the active instance is no standby');
  own = { isActive: false, revision: 7, lag: 2, nextKey: null };
  await until(async () => first.others()[0]?.lag === 2);
  assert.deepEqual(await shown(), [['pid 2', 2]]);

  await second.close();
  await until(async () => first.others().length === 0);
  assert.deepEqual(await shown(), []);
  await cluster.query(
    database,
    `insert into mesh_na.instances (id, name, active, seen)
      values (gen_random_uuid(), 'lost', false, clock_timestamp() - interval '2 seconds')`,
  );
  await until(async () => first.others().length === 1);
  await until(async () => first.others().length === 0);
  assert.deepEqual(await shown(), [['lost', null]], 'an operator sees for longer what was lost');
  await first.close();
});

/** A hundred times as fast. */
const HASTY: LeaseClock = {
  elapsed: systemRuntime.elapsed,
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds / 100);
    return () => clearTimeout(timer);
  },
};
