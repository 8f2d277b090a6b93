/** Commands on machines without hard links, or with a clock that is decades behind, and what remains of a command that hangs. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { mayTrace } from './support/broken-disk.ts';
import { runProgram, runProgramBehind } from './support/child-server.ts';
import { HOUR, REAL_TIME, testClock } from './support/clock.ts';
import { runCommand, startCommand } from './support/commands.ts';
import { makeNetworkFolder, sharedScratch } from './support/folders.ts';
import { isRunning } from './support/processes.ts';
import { get, invite, newKey, nodeRequest } from './support/requests.ts';
import { until } from './support/until.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const scratch = sharedScratch();
const rootKey: string = (await get(na, '/genesis')).body.root_public_key;

const EVERY_LINK_FAILS = ['-e', 'trace=link,linkat', '-e', 'inject=link,linkat:error=EPERM'];

test('on a stick whose file system has no hard links, a file is saved once, and overwrites nothing', {
  skip: !mayTrace(),
}, async () => {
  const token = join(scratch, 'token');
  const tracer = ['strace', '-D', '-f', '-o', '/dev/null', ...EVERY_LINK_FAILS];
  const place = ['--data-dir', na.dataDir, '--url', na.url];
  const create = () => runProgramBehind(tracer, ['invite', 'create', ...place, '--out', token]);
  const before = readdirSync(scratch);
  const { code, stderr } = await create();
  assert.equal(code, 0, stderr);
  const text = readFileSync(token, 'utf8');
  assert.ok(text.length > 40);
  const added = readdirSync(scratch).filter((name) => !before.includes(name));
  assert.deepEqual(added, ['token'], 'no draft is left');

  const again = await create();
  assert.equal(again.code, 3);
  assert.match(again.stderr, / exists; use --force to overwrite it\n/);
  assert.equal(readFileSync(token, 'utf8'), text);
});

function preloaded(source: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(source)}`;
}

/** So far behind its authority is a machine without a battery, whose clock says 1970 before it is set. */
const BEHIND = 20_700 * 24 * HOUR;

suite('a clock that is decades behind', () => {
  const tokenFile = join(scratch, 'invite');
  const ahead = testClock(Date.now() + BEHIND);
  let later: TestAuthority;
  before(async () => {
    const { folder } = makeNetworkFolder('alpha', { now: ahead.now() - 1 });
    later = await startTestAuthority({ dataDir: folder, clock: ahead });
  });
  after(async () => {
    await later.stop();
    rmSync(later.dataDir, { recursive: true, force: true });
  });

  async function joining(name: string): Promise<string[]> {
    const { root_public_key: root } = (await get(later, '/genesis')).body;
    const network = ['--root-key', root, '--token-file', tokenFile];
    return ['--node-dir', join(scratch, name), '--url', later.url, ...network];
  }

  test('keeps a node from joining, which says so and what to do, and leaves the token', async () => {
    const token = await invite(later);
    writeFileSync(tokenFile, token);
    const { code, stderr } = await runCommand(['node', 'join', ...(await joining('node'))]);
    assert.equal(code, 4);
    assert.match(
      stderr,
      /^mesh-na: The genesis .* is not valid before 20\S+, and the clock of this machine says 20\S+: correct the clock if it is wrong\n$/,
    );
    const joined = await nodeRequest(later, '/join', newKey(), { invite_token: token });
    assert.equal(joined.status, 200, 'the token is good with the right clock');
  });

  test('is named by a node that is enrolled, with the difference', async () => {
    const node = ['--node-dir', join(scratch, 'enrolled'), '--url', na.url];
    const join_ = ['node', 'join', ...node, '--token', await invite(na)];
    assert.equal((await runCommand([...join_, '--trust-on-first-use'])).code, 0);
    const behind = preloaded(`
      const { now } = Date;
      Date.now = () => now() - ${BEHIND};`);
    const beat = await runProgram(['node', 'heartbeat', ...node], { NODE_OPTIONS: behind });
    assert.equal(beat.code, 4);
    assert.match(beat.stderr, /\(401 node_auth_failed, request \S+\)\n/);
    assert.match(
      beat.stderr,
      / {2}The clock of this machine is 20\d{3} days behind the clock of the authority: correct the wrong one\.\n$/,
    );
  });

  test('is said once for each attempt by a node that runs, which goes on trying', async () => {
    writeFileSync(tokenFile, await invite(later));
    const running = startCommand(['node', 'run', ...(await joining('runs'))]);
    await until(() => running.shown().match(/rying again in/g)?.length === 2);
    const { code, stderr } = await running.stop();
    assert.equal(code, 0, stderr);
    const causes = stderr.match(/the clock of this machine says 20\S+ correct the clock/g);
    assert.equal(causes?.length, 2, stderr);
    assert.match(stderr, /\nmesh-na: Trying again in \d+ s\n/);
  });
});

test('output that cannot be written ends a command with a sentence', async () => {
  const full = preloaded(`
    process.stdout.write = () => {
      process.stdout.destroy(Object.assign(new Error('full'), { code: 'ENOSPC' }));
      return false;
    };`);
  const { code, stderr } = await runProgram(['completion', 'bash'], { NODE_OPTIONS: full });
  assert.deepEqual(
    [code, stderr],
    [
      3,
      'mesh-na: Standard output cannot be written (ENOSPC)\n  The disk is full: free up space.\n',
    ],
  );
});

test('messages that cannot be written end no command', async () => {
  const full = ['sh', '-c', 'exec "$@" 2> /dev/full', 'sh'];
  const { code } = await runProgramBehind(full, ['node', 'status', '--node-dir', scratch]);
  assert.equal(code, 3, 'as without a full disk');
});

test('a command of --on-change that hangs is ended with everything it started', async () => {
  const tokenFile = join(scratch, 'hook-invite');
  const pids = join(scratch, 'pids');
  writeFileSync(tokenFile, await invite(na));
  // What is left of it must not keep the output of the node open.
  const child = `sleep 100 > /dev/null 2>&1 & echo $! >> ${pids}`;
  const command = `${child}; exec > /dev/null 2>&1; sh -c '${child}; wait'`;
  // A minute is too long for a test.
  const impatient = preloaded(`
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (work, ms, ...args) => setTimeout(work, ms === 60_000 ? 500 : ms, ...args);`);
  const { code, stderr } = await runProgram(
    [
      ...['node', 'run', '--node-dir', join(scratch, 'hook'), '--url', na.url],
      ...['--root-key', rootKey, '--token-file', tokenFile, '--on-change', command],
    ],
    { NODE_OPTIONS: impatient },
    (child) => {
      child.stderr?.on('data', function stopped(text: string) {
        if (!text.includes('exited with SIGKILL')) return;
        child.stderr?.off('data', stopped);
        child.kill('SIGTERM');
      });
    },
  );
  assert.equal(code, 0, stderr);
  const started = readFileSync(pids, 'utf8').trim().split('\n');
  assert.ok(started.length >= 2, started.join());
  await until(() => started.every((pid) => !isRunning(Number(pid))));
});
