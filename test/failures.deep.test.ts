/** The effect of a bug, or a thread that breaks or hangs: one request fails, or the process logs why it ends. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '../src/server/config/load.ts';
import { type BackupTask, backUpInChildProcess } from '../src/server/threads/backup-child.ts';
import {
  createBeats,
  createLook,
  createPulse,
  isAuthoritySilent,
  type ThreadTime,
} from '../src/server/threads/beats.ts';
import { startTestAuthority } from './support/authority.ts';
import { assertEnded } from './support/broken-disk.ts';
import { type ChildServer, startChildServer } from './support/child-server.ts';
import { makeNetworkFolder } from './support/folders.ts';
import {
  AUTHORITY_HANGS,
  EDGE_HANGS,
  EDGE_THROWS,
  EFFECT_THROWS,
  HANDLER_THROWS,
  MANY_INVITES,
  programWith,
  type ThreadKind,
  TIMER_THROWS,
  uncaughtIn,
  uncaughtInChildren,
} from './support/injected-faults.ts';
import { get, operate, outcome } from './support/requests.ts';
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
    // With a state, the backup takes longer than it takes the process to fail.
    await (await startTestAuthority({ dataDir })).stop();
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

// A bug in a handler fails one request; a thread that hangs ends the process, so that a supervisor can restart it.

for (const threads of ['1', '2']) {
  suite(`with ${threads} thread(s)`, () => {
    test('a bug in one handler is a 500 and an ERROR line with the stack, and the service continues', async (t) => {
      const server = await startArmed(t, threads, HANDLER_THROWS);
      let failed = await operate(server.na, '/admin/invite', MANY_INVITES);
      // The fault is armed shortly after the signal is sent.
      while (failed.status === 200)
        failed = await operate(server.na, '/admin/invite', MANY_INVITES);
      assert.equal(outcome(failed), '500 internal_server_error');
      const { code: _code, message, details, request_id, ...more } = failed.body.error;
      assert.deepEqual([request_id, details, more], [failed.headers.get('x-request-id'), {}, {}]);
      assert.doesNotMatch(message, /injected/);
      assert.equal(outcome(await get(server.na, '/readyz')), '200');
      const { code, stderr } = await server.end('SIGTERM');
      assert.equal(code, 0);
      const line = new RegExp(
        `ERROR mesh\\.http request_id=${request_id} .*injected into a handler at .*createInvites`,
      );
      assert.match(stderr, line);
    });

    test('an endless loop in the authority ends the process, and a line says where it was', async (t) => {
      const server = await startArmed(t, threads, AUTHORITY_HANGS);
      const asked = askUntilEnded(server);
      if (threads === '2') await notReady(server);
      await endedByWatchdog(server, 'the authority');
      await asked;
    });

    test('a process that was suspended for longer continues where it was', async (t) => {
      const server = await startArmed(t, threads, AUTHORITY_HANGS);
      server.process.kill('SIGSTOP');
      await delay(2500);
      server.process.kill('SIGCONT');
      assert.equal(outcome(await get(server.na, '/readyz')), '200');
      const { code, stderr } = await server.end('SIGTERM');
      assert.equal(code, 0);
      assert.doesNotMatch(stderr, /CRITICAL/);
    });
  });
}

test('an endless loop in an edge ends the process, and a line says where it was', async (t) => {
  const server = await startArmed(t, '2', EDGE_HANGS);
  let isOver = false;
  void server.ended.then(() => (isOver = true));
  // The fault is armed shortly after the signal is sent, and the other edge continues.
  while (!isOver) await Promise.race([get(server.na, '/genesis').catch(() => null), server.ended]);
  await endedByWatchdog(server, 'edge thread [12]');
});

/** The threads of a process, as the watchdog sees them. */
function watched() {
  const beats = createBeats(2);
  const pulses = [createPulse(beats, 0), createPulse(beats, 1)];
  for (const pulse of pulses) pulse.begin();
  return { beats, pulses };
}

test('the authority is silent after 2 s, and its process ends after 10; threads that report or are not watched live on', () => {
  const { beats, pulses } = watched();
  const look = createLook(beats, () => null);
  const [looks, silences] = [[] as (number | null)[], [] as boolean[]];
  for (let tick = 0; tick <= 20; tick += 1) {
    pulses[1]?.beat();
    looks.push(look());
    silences.push(isAuthoritySilent(beats));
  }
  assert.deepEqual([silences.indexOf(true), looks.indexOf(0)], [4, 20]);
  pulses[0]?.beat();
  assert.equal(look(), null);
  assert.equal(isAuthoritySilent(beats), false);
  for (const pulse of pulses) pulse.end();
  for (const pulse of pulses) pulse.beat();
  for (let tick = 0; tick <= 20; tick += 1) assert.equal(look(), null);
});

/** The tick at which the process ends if its authority says nothing more and the system says this of its thread. */
function endOf(timeAt: (tick: number) => Omit<ThreadTime, 'atMs'>): number | null {
  const { beats, pulses } = watched();
  let tick = 0;
  const look = createLook(beats, () => ({ atMs: 500 * tick, ...timeAt(tick) }));
  let ended: number | null = null;
  for (; tick <= 200 && ended === null; tick += 1) {
    pulses[1]?.beat();
    ended = look() === null ? null : tick;
  }
  for (const pulse of pulses) pulse.end();
  return ended;
}

for (const [what, timeAt, end] of [
  ['runs without end', (tick: number) => ({ cpuMs: 500 * tick, isRunnable: true }), 20],
  ['waits for something without end', () => ({ cpuMs: 0, isRunnable: false }), 20],
  ['gets half of a processor', (tick: number) => ({ cpuMs: 250 * tick, isRunnable: true }), 39],
  ['gets no processor', () => ({ cpuMs: 0, isRunnable: true }), null],
] as const) {
  test(`a silent thread that ${what} ${end === null ? 'does not end the process' : `ends the process after ${end} ticks`}`, () => {
    assert.equal(endOf(timeAt), end);
  });
}

async function endedByWatchdog(server: ChildServer, where: string): Promise<void> {
  const { code, signal, stderr } = await server.ended;
  assert.deepEqual([code, signal], [null, 'SIGKILL']);
  const line = `CRITICAL mesh\\.watchdog Ending after a failure: ${where} hangs`;
  assert.match(stderr.trimEnd().split('\n').at(-1) ?? '', new RegExp(`^\\S+ ${line}$`));
}

/** Sends requests until the process ends; it may answer the first ones. */
async function askUntilEnded({ na }: ChildServer): Promise<void> {
  try {
    while (true) await operate(na, '/admin/invite', MANY_INVITES);
  } catch {
    // The process has ended without an answer.
  }
}

/** Resolves once an edge reports on its own that the authority is not ready, for which it has less than 2 s. */
async function notReady({ na }: ChildServer): Promise<void> {
  const answers = Array.from({ length: 15 }, async (_, i) => {
    await delay(100 * i);
    const { status, body } = await get(na, '/readyz');
    assert.equal(status, 503);
    assert.equal(body.error.details.problem, 'the authority does not answer');
    assert.equal(body.error.details.database.writable, false);
  });
  await Promise.any(answers);
}

/** `program` serves until it gets SIGUSR2 and shows its fault after that. */
async function startArmed(
  t: TestContext,
  threads: string,
  program: readonly string[],
): Promise<ChildServer> {
  const { folder } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const server = await startChildServer(folder, { args: ['--threads', threads], program });
  server.process.kill('SIGUSR2');
  return server;
}
