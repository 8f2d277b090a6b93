/**
 * A burst of requests to every route: however many arrive at once, every thread returns to its event loop soon, nodes are
 * answered meanwhile, and the process lives on. The network is a large one, so that each request costs much.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { seed } from '../bench/seed.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { isOperatorRoute } from '../src/protocol/route-description.ts';
import {
  burst,
  hostileRequest,
  longestSilence,
  percentile,
  programWithProbe,
  residentMib,
  sendHeartbeats,
} from './support/bursts.ts';
import { startChildServer } from './support/child-server.ts';
import { scratchFolder } from './support/folders.ts';
import { get, outcome } from './support/requests.ts';

const { MESH_TEST_BURST, MESH_TEST_BURST_ROUTES, MESH_TEST_BURST_SCALE = '1' } = process.env;
const CONNECTIONS = Number(MESH_TEST_BURST ?? 3000);
const SCALE = Number(MESH_TEST_BURST_SCALE);
const TREATIES = 30_000 * SCALE;
const ATTESTATIONS = 200_000 * SCALE;
const MOST_SILENCE_MS = 1000;
const MOST_BEAT_MS = 100;
/** What the answers to a burst may take in addition to the state. */
const MOST_MIB = 700;

/** So that each request does its work: a limit only says how soon a burst from one address is over. */
const NO_LIMITS = {
  MESH_RATE_LIMIT_ADMIN: 'off',
  MESH_RATE_LIMIT_VERIFY: 'off',
  MESH_RATE_LIMIT_POLICY_READ: 'off',
  MESH_RATE_LIMIT_TRUST_PATH: 'off',
  MESH_RATE_LIMIT_EXPLAIN: 'off',
  MESH_RATE_LIMIT_SEARCH: 'off',
  MESH_RATE_LIMIT_HISTORY: 'off',
  MESH_RATE_LIMIT_JOIN: 'off',
  MESH_TRUST_CYCLE_HOURS: '0',
};

const LONG_HEADERS = `Accept-Encoding: ${'a,'.repeat(29 * 1024)}\r\n`;

const routes = ROUTES.filter(
  ({ path }) =>
    MESH_TEST_BURST_ROUTES === undefined || MESH_TEST_BURST_ROUTES.split(' ').includes(path),
);

for (const threads of ['1', '2']) {
  suite(`with ${threads} thread(s)`, { skip: process.platform !== 'linux' }, () => {
    test('a burst to any route leaves turns to everyone else', async (t) => {
      await using scratch = scratchFolder();
      const folder = `${scratch.path}/data`;
      const counts = { nodes: 100, revoked: 10, invites: 10, agents: 10 };
      await seed(folder, { ...counts, treaties: TREATIES, attestations: ATTESTATIONS });
      await using server = await startChildServer(folder, {
        environment: NO_LIMITS,
        args: ['--threads', threads],
        program: programWithProbe(scratch.path),
      });
      const { na, process } = server;
      const pid = process.pid ?? 0;
      for (const path of ['/connectome', '/atlas', '/dashboard']) await get(na, path);
      longestSilence(scratch.path);
      const before = residentMib(pid);
      for (const route of routes) {
        const name = `${route.method} ${route.path}`;
        await t.test(name, async () => {
          const beating = await sendHeartbeats(na, pid, scratch.path);
          // Operators are few; what others send in their name costs a signature.
          const connections = isOperatorRoute(route) ? CONNECTIONS / 4 : CONNECTIONS;
          const done = await burst(na.url, connections, hostileRequest(route));
          const beats = await beating.end();
          const silence = longestSilence(scratch.path);
          const [p99, memory] = [percentile(beats, 0.99), residentMib(pid)];
          const seen = [...done.statuses]
            .map(([status, count]) => `${count} × ${status}`)
            .join(', ');
          t.diagnostic(
            `${name}: ${seen} in ${done.seconds.toFixed(1)} s; silent ${silence} ms; ${beats.length} heartbeats p99 ${p99.toFixed(0)} ms, longest ${(beats.at(-1) ?? 0).toFixed(0)}; ${memory.toFixed(0)} MiB`,
          );
          assert.equal(process.signalCode, null, server.log());
          assert.ok(silence < MOST_SILENCE_MS, `a thread was silent for ${silence} ms`);
          assert.ok(p99 < MOST_BEAT_MS, `heartbeats took ${p99} ms`);
          assert.ok(beats[0] !== -1, 'heartbeats were refused');
          assert.ok(memory < before + MOST_MIB, `${memory} MiB after ${before}`);
        });
      }
      const healthz = ROUTES.find(({ path }) => path === '/healthz');
      assert.ok(healthz);
      await burst(na.url, CONNECTIONS / 4, hostileRequest(healthz, LONG_HEADERS));
      const silence = longestSilence(scratch.path);
      t.diagnostic(`long headers: silent ${silence} ms`);
      assert.ok(silence < MOST_SILENCE_MS, `a thread was silent for ${silence} ms`);
      assert.equal(outcome(await get(na, '/readyz')), '200');
    });
  });
}
