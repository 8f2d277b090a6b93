/**
 * A disk that fails or is full: one case of each. `failing-calls.deep` and `full-disk.deep` cover every call, and disks
 * that fill up.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertEnded, assertStored, invite } from './support/broken-disk.ts';
import { NO_LIMITS, runProgram, startChildServer } from './support/child-server.ts';
import { failFromNow, mayTrace } from './support/failing-calls.ts';
import { ownNetwork } from './support/folders.ts';
import { networkOn, smallDisk } from './support/small-disk.ts';

test('a server whose commit cannot be stored ends with 1, names the cause, and has stored everything it acknowledged', async (t) => {
  if (!mayTrace()) return t.skip('this user may not trace processes');
  const folder = ownNetwork();
  const server = await startChildServer(folder, { environment: NO_LIMITS });
  const tokens = await invite(server, 2);
  await failFromNow(server, { file: 'state/data.mdb', call: 'fdatasync', error: 'EIO', nth: 1 });
  tokens.push(...(await invite(server)));
  await assertEnded(server, /EIO|Input\/output error/);
  await assertStored(folder, tokens);
});

test('a start on a full disk is refused in one sentence, and the next one serves', async (t) => {
  await using disk = await smallDisk('4m');
  if (disk === null) return t.skip('this user may not mount a disk in a namespace of their own');
  const dataDir = networkOn(disk);
  disk.fill();
  const serve = ['serve', '--data-dir', dataDir, '--port', '0'];
  const { code, signal, stdout, stderr } = await runProgram(serve);
  assert.deepEqual({ code, signal, stdout }, { code: 3, signal: null, stdout: '' }, stderr);
  assert.match(
    stderr,
    /^mesh-na: .*cannot be written \(ENOSPC\)\n {2}The disk is full: free up space\.\n$/,
  );
  disk.clear();
  await assertStored(dataDir, []);
});
