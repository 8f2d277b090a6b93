/** Bursts of the requests that cost most: every thread returns to its event loop soon, and probes and nodes pass. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seed } from '../bench/seed.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { burst, hostileRequest, longestSilence, programWithProbe } from './support/bursts.ts';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { scratchFolder } from './support/folders.ts';
import { get, outcome } from './support/requests.ts';

const CONNECTIONS = 300;
const MOST_SILENCE_MS = 1000;
const COSTLY = ['/connectome', '/sovereign', '/attestations'];

for (const threads of ['1', '2']) {
  test(`${CONNECTIONS} costly requests at once leave turns to everyone else with ${threads} thread(s)`, {
    skip: process.platform !== 'linux',
  }, async () => {
    await using scratch = scratchFolder();
    const folder = `${scratch.path}/data`;
    const counts = { nodes: 10, revoked: 1, invites: 1, agents: 1 };
    await seed(folder, { ...counts, treaties: 4000, attestations: 20_000 });
    await using server = await startChildServer(folder, {
      environment: { ...NO_LIMITS, MESH_RATE_LIMIT_SEARCH: 'off' },
      args: ['--threads', threads],
      program: programWithProbe(scratch.path),
    });
    const { na } = server;
    await get(na, '/connectome');
    longestSilence(scratch.path);
    for (const route of ROUTES.filter(({ path }) => COSTLY.includes(path))) {
      const { statuses } = await burst(na.url, CONNECTIONS, hostileRequest(route));
      // Each gets an answer, or is turned away.
      const known = [...statuses.keys()].filter((status) => ![200, 404, 503].includes(status));
      assert.deepEqual(known, [], route.path);
      const silence = longestSilence(scratch.path);
      assert.ok(silence < MOST_SILENCE_MS, `a thread was silent for ${silence} ms`);
    }
    assert.equal(outcome(await get(na, '/readyz')), '200');
  });
}

test('queries that search, sort or filter are limited together, and pages and whole lists are not', async () => {
  await using scratch = scratchFolder();
  const folder = `${scratch.path}/data`;
  await seed(folder, { nodes: 1, revoked: 0, invites: 0, agents: 0 });
  await using server = await startChildServer(folder, {
    environment: { ...NO_LIMITS, MESH_RATE_LIMIT_SEARCH: '2/60' },
  });
  const { na } = server;
  for (const [path, expected] of [
    ['/attestations', '200'],
    ['/attestations?limit=1', '200'],
    ['/connectome', '200'],
    ['/attestations?limit=1&subject_id=nobody', '200'],
    ['/connectome?q=s', '200'],
    ['/recognition-treaties?status=active', '429 rate_limit_exceeded'],
    ['/connectome?sort=id', '429 rate_limit_exceeded'],
    ['/recognition-treaties?limit=1&cursor=', '200'],
    ['/connectome', '200'],
    ['/dashboard?range=24h', '200'],
  ] as const) {
    const answer = await get(na, path);
    assert.equal(answer.status === 200 ? '200' : outcome(answer), expected, path);
  }
});
