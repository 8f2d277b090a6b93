/** A start that fails after requests are served ends the whole process, and says why. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { ownNetwork } from './support/folders.ts';
import { LATE_START_THROWS } from './support/injected-faults.ts';
import { sharedCluster } from './support/shared-cluster.ts';

const cluster = await sharedCluster();

for (const [what, threads, hasDatabase] of [
  ['in its data folder, with one thread', '1', false],
  ['in its data folder, with two', '2', false],
  ['in PostgreSQL, with one thread', '1', true],
  ['in PostgreSQL, with two', '2', true],
] as const) {
  test(`a start that fails late ends with 3 and its cause, with the state ${what}, and the next one serves`, async () => {
    const folder = ownNetwork();
    const place = hasDatabase ? ['--store', await cluster.createStore()] : [];
    const args = ['--threads', threads, ...place];
    await assert.rejects(
      startChildServer(folder, { args, program: LATE_START_THROWS }),
      /ended with 3: [\s\S]*"code":"start_refused","message":"injected into the start"/,
    );
    await using server = await startChildServer(folder, { args, environment: NO_LIMITS });
    const { code } = await server.end('SIGTERM');
    assert.equal(code, 0);
  });
}
