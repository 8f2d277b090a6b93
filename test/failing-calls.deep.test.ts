/**
 * Each kind of system call on the data directory fails once, and disks fill up: the process refuses to start, or ends, and
 * names the cause. Nothing that it acknowledged is lost, and it starts again once the disk works. MESH_TEST_CALLS=all,
 * which `npm run test:longer -- failing-calls` sets, runs every row; otherwise a few of each kind run.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { suite, test } from 'node:test';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority } from './support/authority.ts';
import {
  assertEnded,
  assertNamed,
  assertStored,
  type FailingCall,
  failFromNow,
  failingFromStart,
  invite,
  mayTrace,
} from './support/broken-disk.ts';
import {
  type ChildEnvironment,
  type ChildServer,
  type Ended,
  NO_LIMITS,
  runProgramBehind,
  startChildServer,
} from './support/child-server.ts';
import { MINUTE, REAL_TIME } from './support/clock.ts';
import { ownFolder, ownNetwork } from './support/folders.ts';
import { joinedNode, outcome, sendSigned, signedByNode } from './support/requests.ts';
import { networkOn, type SmallDisk, smallDisk } from './support/small-disk.ts';

const skip = mayTrace() ? false : 'this user may not trace processes';
const DATABASE = 'state/data.mdb';

type Row = readonly [file: string, call: string, error: string, nth?: number];

const ARE_ALL = process.env.MESH_TEST_CALLS === 'all';
/** All rows, or the first `count`. */
function some(count: number, rows: readonly Row[]): readonly Row[] {
  return ARE_ALL ? rows : rows.slice(0, count);
}

const INIT: readonly Row[] = [
  ['mesh-na.lock', 'openat', 'EIO'],
  ['.init', 'mkdir', 'ENOSPC'],
  ['.init/keys/na.key', 'openat', 'EIO'],
  ['.init/keys/na.key', 'write', 'ENOSPC'],
  ['.init/keys/na.key', 'fsync', 'EIO'],
  ['.init/genesis.json.new', 'rename', 'EIO'],
  ['.init/keys', 'rename', 'EIO'],
];

const START: readonly Row[] = [
  ['mesh-na.lock', 'openat', 'EIO'],
  ['mesh-na.lock', 'ftruncate', 'EIO'],
  ['mesh-na.lock', 'pwrite64', 'ENOSPC'],
  ['state', 'mkdir', 'ENOSPC'],
  ['state/probe', 'openat', 'EIO'],
  ['state/probe', 'write', 'ENOSPC'],
  ['state/probe', 'fsync', 'EIO'],
  [DATABASE, 'fdatasync', 'EIO', 1],
  [DATABASE, 'fdatasync', 'EIO', 3],
  ['state', 'fsync', 'EIO'],
  ['mesh-na.state.json.new', 'openat', 'EIO'],
  ['mesh-na.state.json.new', 'write', 'ENOSPC'],
  ['mesh-na.state.json.new', 'fsync', 'EIO'],
  ['mesh-na.state.json.new', 'rename', 'EIO'],
];

/**
 * LMDB frees memory that is still in use when it cannot open a file, and its message about a page that cannot be
 * written may overflow its buffer: either may end the process with a signal.
 */
const DAMAGING: readonly Row[] = [
  [DATABASE, 'pwrite64', 'ENOSPC', 1],
  [DATABASE, 'pwrite64', 'ENOSPC', 2],
  [DATABASE, 'pwrite64', 'EIO', 3],
  ['state/lock.mdb', 'openat', 'EIO'],
  ['state/lock.mdb', 'ftruncate', 'ENOSPC'],
  ['state/lock.mdb', 'mmap', 'ENOMEM'],
  [DATABASE, 'openat', 'EIO', 3],
  [DATABASE, 'mmap', 'ENOMEM'],
];

const COMMIT: readonly Row[] = [
  [DATABASE, 'fdatasync', 'EIO', 1],
  [DATABASE, 'fdatasync', 'ENOSPC', 2],
];

/** Like `DAMAGING`. The last write of a commit is the meta page, which some of the commit's other pages may precede. */
const DAMAGING_COMMIT: readonly Row[] = [
  [DATABASE, 'pwrite64', 'ENOSPC'],
  [DATABASE, 'pwrite64', 'EIO', 2],
  [DATABASE, 'pwrite64', 'EIO', 3],
  [DATABASE, 'pwrite64', 'EIO', 4],
];

const CAUSE = /EIO|ENOSPC|Input\/output error|No space left on device/;

suite('an init', { skip }, () => {
  for (const row of some(2, INIT)) {
    test(`is refused if ${titleOf(row)} fails, and the next one creates the network`, async () => {
      const folder = ownFolder();
      const init = ['init', '--data-dir', folder];
      assertRefused(await runProgramBehind(failingFromStart(folder, failingOf(row)), init));
      const { code, stderr } = await runProgramBehind([], init);
      assert.equal(code, 0, stderr);
      await assertStored(folder, []);
    });
  }
});

suite('a first start', { skip }, () => {
  for (const row of some(3, START)) {
    test(`is refused if ${titleOf(row)} fails, and the next one serves`, async () => {
      const folder = ownNetwork();
      assertRefused(await startedWith(folder, row));
      await assertStored(folder, []);
    });
  }
  for (const row of some(2, DAMAGING)) {
    test(`serves nothing if ${titleOf(row)} fails, and the next one serves`, async () => {
      const folder = ownNetwork();
      const { code, stdout } = await startedWith(folder, row);
      assert.notEqual(code, 0);
      assert.equal(stdout, '');
      await assertStored(folder, []);
    });
  }
});

suite('a server', { skip }, () => {
  for (const row of COMMIT) {
    test(`ends with 1 if ${titleOf(row)} fails, and everything it acknowledged is stored`, async () => {
      const { server, tokens } = await invitingUntil(row);
      await assertEnded(server, CAUSE);
      await assertStored(server.na.dataDir, tokens);
    });
  }
  for (const row of DAMAGING_COMMIT) {
    test(`ends if ${titleOf(row)} fails, and everything it acknowledged is stored`, async () => {
      const { server, tokens } = await invitingUntil(row);
      const { code, signal, stderr } = await server.ended;
      assert.notEqual(code, 0);
      if (signal === null) assertNamed(stderr, CAUSE);
      await assertStored(server.na.dataDir, tokens);
    });
  }

  test('ends with 1 if its last flush fails, and no heartbeat that it acknowledged is accepted again', async () => {
    const server = await start({ MESH_LIVENESS_FLUSH_MS: '60000' });
    const { key, certId } = await joinedNode(server.na);
    const beat = signedByNode(server.na, '/heartbeat', key, { cert_id: certId, status: 'healthy' });
    assert.equal(outcome(await sendSigned(server.na, beat)), '200');
    await failFromNow(server, failingOf([DATABASE, 'fdatasync', 'EIO']));
    server.process.kill('SIGTERM');
    await assertEnded(server, CAUSE);
    await using na = await startTestAuthority({ dataDir: server.na.dataDir, clock: REAL_TIME });
    assert.equal(outcome(await sendSigned(na, beat)), '401 node_auth_failed');
  });
});

function failingOf([file, call, error, nth = 1]: Row): FailingCall {
  return { file, call, error, nth };
}

function titleOf([file, call, error, nth = 1]: Row): string {
  return `${call} number ${nth} of ${file} (${error})`;
}

function startedWith(folder: string, row: Row): Promise<Ended> {
  const serve = ['serve', '--data-dir', folder, '--port', '0', '--json'];
  return runProgramBehind(failingFromStart(folder, failingOf(row)), serve);
}

function assertRefused({ code, signal, stdout, stderr }: Ended): void {
  assert.deepEqual({ code, signal, stdout }, { code: 3, signal: null, stdout: '' }, stderr);
  assert.match(stderr, CAUSE);
  assert.match(stderr, /cannot be (used|locked|written|changed)/);
}

function start(environment: ChildEnvironment = {}): Promise<ChildServer> {
  return startChildServer(ownNetwork(), { environment: { ...NO_LIMITS, ...environment } });
}

/** A server with a failing call, and the tokens of the invites that it acknowledged before and after the failure. */
async function invitingUntil(row: Row) {
  const server = await start();
  const tokens = await invite(server, 2);
  await failFromNow(server, failingOf(row));
  tokens.push(...(await invite(server)));
  return { server, tokens };
}

// Writes that fail: the process names the cause and ends, and what it acknowledged is on disk.

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
        const server = await startOn(dataDir, threads);
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

function startOn(dataDir: string, threads: string): Promise<ChildServer> {
  // Turns off the free space check, because a disk can still fill up, for example by other programs.
  const environment = { ...NO_LIMITS, MESH_LIVENESS_FLUSH_MS: '200', MESH_MIN_FREE_MB: '0' };
  return startChildServer(dataDir, { args: ['--threads', threads], environment });
}

async function startOnDisk(threads: string) {
  const folder = ownNetwork();
  return { dataDir: folder, server: await startOn(folder, threads) };
}

/** Makes writes beyond the first page of any file fail; pipes and sockets do not count as files here. */
function refuseWrites({ process }: ChildServer): void {
  execFileSync('prlimit', ['--pid', String(process.pid), '--fsize=4096']);
}
