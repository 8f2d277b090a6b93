/** The effect of a bug or a broken thread: one request fails, or the process logs why it ends. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { loadConfig } from '../src/server/config/load.ts';
import { type BackupTask, backUpInChildProcess } from '../src/server/threads/backup-child.ts';
import { startArmed } from './support/armed-server.ts';
import { assertEnded } from './support/broken-disk.ts';
import { startChildServer } from './support/child-server.ts';
import { makeNetworkFolder } from './support/folders.ts';
import {
  EDGE_THROWS,
  EFFECT_THROWS,
  programWith,
  type ThreadKind,
  TIMER_THROWS,
  uncaughtIn,
  uncaughtInChildren,
} from './support/injected-faults.ts';
import { get, operate } from './support/requests.ts';
import { signedNetwork, startSigner } from './support/signer.ts';

for (const threads of ['1', '2']) {
  suite(`with ${threads} thread(s)`, () => {
    test('an exception after a commit ends the process, and the log names it', async (t) => {
      const server = await startArmed(t, threads, EFFECT_THROWS);
      const policy = { policy_id: 'p', content: {} };
      // The fault is armed shortly after the signal is sent.
      await assert.rejects(async () => {
        while (true) await operate(server.na, '/admin/policy', policy);
      }, TypeError);
      const { code, stderr } = await server.ended;
      assert.equal(code, 1);
      assert.match(
        stderr,
        fatalLine('effects of a commit: TypeError: injected behind a commit at'),
      );
    });

    test('a timer that throws ends the process, and the log names it', async (t) => {
      const server = await startArmed(t, threads, TIMER_THROWS);
      const { code, stderr } = await server.ended;
      assert.equal(code, 1);
      assert.match(stderr, fatalLine('uncaught exception: TypeError: injected into a timer at'));
    });
  });
}

for (const how of ['exception', 'rejection'] as const) {
  for (const kind of ['edge thread', 'watchdog thread'] as const) {
    test(`an uncaught ${how} on the ${kind} ends the process with 1, and one line says where it was`, async (t) => {
      const server = await startArmed(t, '2', uncaughtIn(kind, how));
      await assertEnded(server, uncaughtOn(kind));
    });
  }
}

test('an uncaught exception on the thread that calls the signer ends the process with 1, and one line says where it was', async () => {
  const network = signedNetwork();
  await startSigner(network);
  const args = ['--signer', network.address];
  const program = uncaughtIn('signer thread', 'exception');
  const server = await startChildServer(network.dataDir, { args, program });
  server.process.kill('SIGUSR2');
  await assertEnded(server, uncaughtOn('signer thread'));
});

test('an uncaught exception in the signer ends it with 1, and one line says where it was', async () => {
  const signer = await startSigner(signedNetwork(), [], TIMER_THROWS);
  signer.process.kill('SIGUSR2');
  assert.deepEqual(await signer.ended, [1, null]);
  assert.match(
    signer.output(),
    fatalLine('uncaught exception: TypeError: injected into a timer at'),
  );
});

for (const how of ['exception', 'rejection'] as const) {
  test(`a process that backs up reports the uncaught ${how} that ended it`, async () => {
    const { folder: dataDir } = makeNetworkFolder();
    const signal = new AbortController().signal;
    const ended =
      /^Error: The child process ended with 1 .*TypeError: injected behind all handlers\s+at /s;
    await uncaughtInChildren(how, async () => {
      await assert.rejects(backUpInChildProcess(backupTask(dataDir), signal), ended);
    });
    rmSync(dataDir, { recursive: true });
  });
}

test('an uncaught exception before the service is ready ends the process with 1, and one line says where it was', async () => {
  const { folder } = makeNetworkFolder();
  const program = programWith(
    `if (isMainThread) process.once('newListener', function wait(event) {
      if (event !== 'uncaughtException') return void process.once('newListener', wait);
      setImmediate(() => { throw new TypeError('injected into the start'); });
    });`,
  );
  await assert.rejects(
    startChildServer(folder, { program }),
    /ended with 1: .*CRITICAL mesh\.process Ending after a failure: uncaught exception: TypeError: injected into the start at/s,
  );
  rmSync(folder, { recursive: true });
});

test('an exception while an edge thread accepts a request ends the process with 1, and one line says where it was', async (t) => {
  const server = await startArmed(t, '2', EDGE_THROWS);
  let isOver = false;
  void server.ended.then(() => (isOver = true));
  // The fault is armed slightly after the signal is sent.
  while (!isOver) await Promise.race([get(server.na, '/genesis').catch(() => null), server.ended]);
  await assertEnded(server, uncaughtOn('edge thread'));
});

function backupTask(dataDir: string): BackupTask {
  const { keySource, genesis, publicKey, keyId } = loadConfig({ dataDir }, {}, Date.now());
  return {
    dataDir,
    database: null,
    genesis,
    keySource: keySource(),
    key: { publicKey, keyId },
    recipients: [],
    path: join(dataDir, 'backup'),
    now: Date.now(),
  };
}

function uncaughtOn(kind: ThreadKind): RegExp {
  return new RegExp(`: ${kind}( [12])?: TypeError: injected behind all handlers at `);
}

function fatalLine(what: string): RegExp {
  return new RegExp(`CRITICAL mesh\\.process Ending after a failure: ${what}`);
}
