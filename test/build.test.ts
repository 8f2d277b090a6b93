/** The program as `npm run build` compiles it: the same one, without a loader for TypeScript. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { packageVersion } from '../src/cli/version.ts';
import { makeNetworkFolder } from './support/authority.ts';
import { startChildServer } from './support/child-server.ts';
import { get, heartbeat, joinedNode, operate } from './support/requests.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const PROGRAM = 'dist/src/main.js';

before(() => execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' }));

test('the compiled program tells the version of its package', () => {
  const told = execFileSync(process.execPath, [PROGRAM, '--version'], { cwd: root });
  assert.equal(told.toString().trim(), packageVersion());
});

test('the compiled program finds the worker of every kind of thread', async () => {
  const { threadEntry } = await import(`../dist/src/threads/${'thread-entry.js'}`);
  for (const name of ['edge', 'list', 'watchdog']) assert.ok(existsSync(threadEntry(name)), name);
});

for (const threads of ['1', '3']) {
  test(`the compiled program serves the main job on ${threads} thread(s)`, async () => {
    const { folder } = makeNetworkFolder();
    try {
      const server = await startChildServer(folder, {
        program: [PROGRAM],
        args: ['--threads', threads],
      });
      await using na = server.na;
      const node = await joinedNode(na);
      assert.equal((await heartbeat(na, node)).status, 200);
      assert.deepEqual((await get(na, '/nodes')).body, { count: 1 });
      assert.equal((await operate(na, '/admin/revoke', { cert_id: node.certId })).status, 200);
      assert.equal((await heartbeat(na, node)).body.error.code, 'certificate_revoked');
      assert.equal((await server.end('SIGTERM')).code, 0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}
