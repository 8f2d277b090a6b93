/** Writes that fail: the process names the cause and ends, and what it acknowledged is on disk. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { suite, test } from 'node:test';
import { formatInstant } from '../src/base/timestamp.ts';
import { assertEnded, assertStored, invite } from './support/broken-disk.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { MINUTE } from './support/clock.ts';
import { ownNetwork } from './support/folders.ts';
import { joinedNode, outcome, sendSigned, signedByNode } from './support/requests.ts';
import { networkOn, type SmallDisk, smallDisk } from './support/small-disk.ts';

for (const threads of ['1', '2']) {
  suite(`with ${threads} thread(s)`, () => {
    for (const [title, fill] of [
      ['a full disk', (disk) => disk.fill()],
      ['a disk that fills up in the midst of a write', (disk) => disk.leave(2 * 4096)],
    ] as const satisfies readonly (readonly [string, (disk: SmallDisk) => void])[]) {
      test(`${title} ends the process with 1, is named, and loses nothing that was acknowledged`, async (t) => {
        await using disk = await smallDisk('4m');
        if (disk === null)
          return t.skip('this user may not mount a disk in a namespace of their own');
        const dataDir = networkOn(disk);
        const server = await start(dataDir, threads);
        const tokens = await invite(server, 2);
        fill(disk);
        tokens.push(...(await invite(server)));
        await assertEnded(server, /commit: Error: No space left on device/);
        disk.clear();
        await assertStored(dataDir, tokens);
      });
    }

    test('a data file that cannot grow ends the process with 1, and nothing acknowledged is lost', async () => {
      const { dataDir, server } = await startOnDisk(threads);
      const tokens = await invite(server, 2);
      refuseWrites(server);
      tokens.push(...(await invite(server)));
      await assertEnded(server, /commit: Error: (File too large|Input\/output error)/);
      await assertStored(dataDir, tokens);
    });

    test('liveness that cannot be written ends the process with 1, without any command', async () => {
      const { server } = await startOnDisk(threads);
      const node = await joinedNode(server.na);
      refuseWrites(server);
      // Signed before the last flush, so that it is acknowledged immediately.
      const timestamp = formatInstant(Date.now() - MINUTE);
      const body = { cert_id: node.certId, status: 'healthy' };
      const beat = signedByNode(server.na, '/heartbeat', node.key, body, { timestamp });
      // Writing the contact of the join may end the process before this request is answered.
      const answer = await sendSigned(server.na, beat).catch(() => null);
      if (answer !== null) assert.equal(outcome(answer), '200');
      await assertEnded(server, /liveness flush: Error: (File too large|Input\/output error)/);
    });
  });
}

function start(dataDir: string, threads: string): Promise<ChildServer> {
  // Turns off the free space check, because a disk can still fill up, for example by other programs.
  const environment = { ...NO_LIMITS, MESH_LIVENESS_FLUSH_MS: '200', MESH_MIN_FREE_MB: '0' };
  return startChildServer(dataDir, { args: ['--threads', threads], environment });
}

async function startOnDisk(threads: string) {
  const folder = ownNetwork();
  return { dataDir: folder, server: await start(folder, threads) };
}

/** Makes writes beyond the first page of any file fail; pipes and sockets do not count as files here. */
function refuseWrites({ process }: ChildServer): void {
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=4096']);
}
