import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { open } from 'lmdb';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { ownNetwork } from './support/folders.ts';
import { get, operate } from './support/requests.ts';

test('a server that can no longer store ends with 1 and never answers the command', async () => {
  const folder = ownNetwork();
  const server = await startChildServer(folder, { environment: NO_LIMITS });
  assert.equal((await get(server.na, '/readyz')).status, 200);
  await takeFolderOver(folder);
  await assert.rejects(operate(server.na, '/admin/invite'), TypeError);
  const { code, stderr } = await server.ended;
  assert.equal(code, 1);
  // The commit detects it or, on a busy machine, the periodic check that runs before it.
  assert.match(
    stderr,
    /CRITICAL mesh\.process Ending after a failure: (?:commit|ownership): .*Another process has taken over the data directory/,
  );
});

test('a server whose folder was taken over ends by itself, without any request', async () => {
  const folder = ownNetwork();
  const server = await startChildServer(folder, { environment: NO_LIMITS });
  await takeFolderOver(folder);
  const { code, stderr } = await server.ended;
  assert.equal(code, 1);
  assert.match(stderr, /CRITICAL .*Another process has taken over the data directory/);
});

/** Takes the folder over, like a process that considers its owner dead. */
async function takeFolderOver(folder: string): Promise<void> {
  const env = open({ path: join(folder, 'state'), maxDbs: 16 });
  const meta = env.openDB<object, string>({ name: 'meta', useVersions: true });
  await meta.put('owner', { pid: 1 }, 1_000_000);
  await env.close();
}
