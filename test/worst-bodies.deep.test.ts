/**
 * The cost to an edge of the worst request that a search finds; the long form is `search-worst-bodies.ts`. Each search
 * is another one, and takes minutes on a busy machine.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CAN_MEASURE_THREADS } from './support/thread-cpu.ts';
import {
  type Cost,
  describeCost,
  describeFound,
  growthByHosts,
  slowness,
  startMeasuredServer,
  worstBodies,
  worstQueries,
} from './support/worst-bodies.ts';

/** Milliseconds of CPU that one request may cost an edge, on the nominal machine. */
const EDGE_LIMIT = 50;
/** The speed of the machine changes during the search. */
const SLACK = 1.5;
/** Bytes of resident memory. */
const MOST_GROWTH = 30 * 1024 ** 2;
const SEARCH = { plain: 12, rounds: 5 };

const skip = CAN_MEASURE_THREADS ? false : 'CPU of threads is read from /proc';

test('no request of a stranger takes 50 ms of an edge', { skip }, async (t) => {
  await using server = await startMeasuredServer();
  const before = slowness();
  const limited = (cost: Cost | undefined, description: string) => {
    assert.ok(cost !== undefined);
    const slow = Math.max(before, slowness());
    t.diagnostic(`the machine is ${slow.toFixed(2)} times as slow as the nominal one`);
    assert.ok(cost.edge < EDGE_LIMIT * slow * SLACK, description);
  };
  await t.test('a body of any shape', async () => {
    const seed = Date.now() % 2 ** 31;
    const found = await worstBodies(server, { ...SEARCH, seed, progress: () => undefined });
    for (const one of found) t.diagnostic(`seed ${seed}: ${describeFound(one)}`);
    const [worst] = found;
    limited(worst, `seed ${seed}: ${worst && describeFound(worst)}`);
  });
  await t.test('a query', async () => {
    const [worst] = await worstQueries(server);
    t.diagnostic(worst === undefined ? 'none' : describeCost(worst));
    limited(worst, `${worst && describeCost(worst)}`);
  });
  await t.test('no invented hostname stays in memory', async () => {
    const growth = await growthByHosts(server, 2000);
    t.diagnostic(`${Math.round(growth / 1024 ** 2)} MB more`);
    assert.ok(growth < MOST_GROWTH);
  });
});
