/** Commands on machines without hard links, or with the clock of 1970, and what remains of a command that hangs. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startTestAuthority } from './support/authority.ts';
import { runProgram, runProgramBehind } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { mayTrace } from './support/failing-calls.ts';
import { get, invite } from './support/requests.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const scratch = mkdtempSync(join(tmpdir(), 'mesh-na-odd-'));
after(() => rmSync(scratch, { recursive: true, force: true }));
const rootKey: string = (await get(na, '/genesis')).body.root_public_key;

async function until(isTrue: () => boolean): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!isTrue()) {
    assert.ok(Date.now() < deadline, 'It does not come to pass');
    await pause(20);
  }
}

const EVERY_LINK_FAILS = ['-e', 'trace=link,linkat', '-e', 'inject=link,linkat:error=EPERM'];

suite('files on a stick whose file system has no hard links', { skip: !mayTrace() }, () => {
  const network = join(scratch, 'network');
  const request = join(scratch, 'request.json');
  const signed = join(scratch, 'signed.json');
  const token = join(scratch, 'token');
  const place = ['--data-dir', na.dataDir, '--url', na.url];
  const root = ['--root-key', join(network, 'keys', 'root.key'), '--yes'];

  function run(args: readonly string[]) {
    const tracer = ['strace', '-D', '-f', '-o', '/dev/null', ...EVERY_LINK_FAILS];
    return runProgramBehind(tracer, args);
  }

  for (const [what, command, file] of [
    ['a request', ['authority-key', 'prepare', '--data-dir', network, '--out', request], request],
    [
      'a signature',
      ['authority-key', 'sign', '--request', request, ...root, '--out', signed],
      signed,
    ],
    ['a token', ['invite', 'create', ...place, '--out', token], token],
  ] as const) {
    test(`${what} is saved there once, and overwrites nothing`, async () => {
      if (!existsSync(network)) {
        assert.equal((await runCommand(['init', '--data-dir', network])).code, 0);
      }
      const before = readdirSync(scratch);
      const { code, stderr } = await run(command);
      assert.equal(code, 0, stderr);
      const text = readFileSync(file, 'utf8');
      assert.ok(text.length > 40);
      const added = readdirSync(scratch).filter((name) => !before.includes(name));
      assert.deepEqual(added, [file.slice(scratch.length + 1)], 'no draft is left');

      const again = await run(command);
      assert.equal(again.code, 3);
      assert.match(
        again.stderr,
        / exists(?:; use --force to overwrite it\n|\n {2}Choose another name)/,
      );
      assert.equal(readFileSync(file, 'utf8'), text);
    });
  }
});

/** The clock of a machine without a battery, before it is set. */
const OF_1970 = preloaded(`
  const { now } = Date;
  const began = now();
  Date.now = () => 60_000 + now() - began;`);

function preloaded(source: string): string {
  return `--import=data:text/javascript,${encodeURIComponent(source)}`;
}

suite('a clock that says 1970', () => {
  const tokenFile = join(scratch, 'invite');
  const network = ['--root-key', rootKey, '--token-file', tokenFile];
  const at = (name: string) => ['--node-dir', join(scratch, name), '--url', na.url];

  test('keeps a node from joining, which says so and what to do, and leaves the token', async () => {
    writeFileSync(tokenFile, await invite(na));
    const join_ = ['node', 'join', ...at('node'), ...network];
    const { code, stderr } = await runProgram(join_, { NODE_OPTIONS: OF_1970 });
    assert.equal(code, 4);
    assert.match(
      stderr,
      /^mesh-na: The genesis .* is not valid before 20\S+, and the clock of this machine says 1970-01-01T\S+: correct the clock if it is wrong\n$/,
    );
    assert.equal((await runProgram(join_)).code, 0, 'the token is good with the right clock');
  });

  test('is named by a node that is enrolled, with the difference', async () => {
    const beat = await runProgram(['node', 'heartbeat', ...at('node')], { NODE_OPTIONS: OF_1970 });
    assert.equal(beat.code, 4);
    assert.match(beat.stderr, /\(401 node_auth_failed, request \S+\)\n/);
    assert.match(
      beat.stderr,
      / {2}The clock of this machine is 20\d{3} days behind the clock of the authority: correct the wrong one\.\n$/,
    );
  });

  test('is said once for each attempt by a node that runs, which goes on trying', async () => {
    writeFileSync(tokenFile, await invite(na));
    let process: ChildProcess | undefined;
    const ended = runProgram(
      ['node', 'run', ...at('runs'), ...network],
      { NODE_OPTIONS: OF_1970 },
      (child) => {
        process = child;
        let shown = '';
        child.stderr?.on('data', (text) => {
          shown += text;
          if (shown.match(/rying again in/g)?.length === 2) child.kill('SIGTERM');
        });
      },
    );
    const { code, stderr } = await ended;
    assert.deepEqual([code, process?.signalCode], [0, null], stderr);
    const causes = stderr.match(/the clock of this machine says 1970-\S+ correct the clock/g);
    assert.equal(causes?.length, 2, stderr);
    assert.match(stderr, /\nmesh-na: Trying again in \d+ s\n/);
  });
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

/** A process that has ended may still be listed until it is reaped. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
