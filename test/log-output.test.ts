/** Writing the log never blocks the process. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createLogOutput, fileWriter } from '../src/base/log/log-output.ts';
import { freePort } from '../src/edge/http/free-port.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { spawnNode } from './support/processes.ts';
import { PROGRAM } from './support/project.ts';

const LINES = Array.from({ length: 2000 }, (_, index) => `line ${index} of a log, with ü in it\n`);

test('lines reach the file in order, each of them once it is flushed', async () => {
  using file = openFile();
  const log = createLogOutput(fileWriter(file.fd), true);
  for (const line of LINES) log.write(line);
  await log.flush(10_000);
  assert.equal(file.text(), LINES.join(''));
  assert.equal(log.droppedLines(), 0);
});

test('a line that nothing follows is written within a moment', async () => {
  using file = openFile();
  const log = createLogOutput(fileWriter(file.fd), true);
  log.write('alone\n');
  for (let waited = 0; file.text() === '' && waited < 5000; waited += 20) await delay(20);
  assert.equal(file.text(), 'alone\n');
});

test('an urgent line is written at once, or right after what is being written', () => {
  const chunks: string[] = [];
  let written: () => void = () => undefined;
  const log = createLogOutput((chunk, done) => {
    chunks.push(chunk);
    written = () => done(null);
  }, false);
  log.write('held back\n');
  log.write('urgent\n', true);
  log.write('urgent again\n', true);
  written();
  assert.deepEqual(chunks, ['held back\nurgent\n', 'urgent again\n']);
});

test('lines that a full disk refuses are counted, and the next lines are tried again', async () => {
  const fd = openSync('/dev/full', 'a');
  const log = createLogOutput(fileWriter(fd), true);
  for (const line of LINES.slice(0, 5)) log.write(line);
  await log.flush(10_000);
  log.write(LINES.join(''));
  await log.flush(10_000);
  assert.equal(log.droppedLines(), 5 + LINES.length);
  closeSync(fd);
});

test('while the reader is stalled, a limited number of lines waits, and a flush times out', async () => {
  let held = 0;
  const log = createLogOutput((chunk) => {
    held += chunk.length;
  }, false);
  const block = `${'x'.repeat(1023)}\n`.repeat(1024);
  for (let i = 0; i < 64; i += 1) log.write(block);
  await log.flush(1);
  assert.equal(held, block.length, 'one chunk at a time');
  assert.equal(log.droppedLines(), (64 - 1 - 8) * 1024);
});

suite('a stop is clean', () => {
  test('with a log file on a full disk', async (t) => {
    const full = openSync('/dev/full', 'a');
    const { child, url } = await serveOn(t, full);
    closeSync(full);
    // The first lines are dropped shortly after they were logged.
    while (!/^mesh_na_log_lines_dropped_total [1-9]/m.test(await expositionOf(url))) {
      await delay(20);
    }
    assert.deepEqual(await stop(child), [0, null]);
  });

  test('when no one reads standard output', async (t) => {
    const { child, url } = await serveOn(t, 'pipe');
    const path = `/${'long'.repeat(1000)}`;
    for (let i = 0; i < 150; i += 1) await (await fetch(url + path)).text();
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    assert.deepEqual(await stop(child), [0, null]);
  });
});

/** A server whose standard output no one reads. */
async function serveOn(t: TestContext, stdout: number | 'pipe') {
  const { folder } = makeNetworkFolder();
  const port = await freePort('127.0.0.1', 0);
  const args = [...PROGRAM, 'serve', '--data-dir', folder];
  const child = spawnNode([...args, '--port', String(port), '--threads', '2'], {
    env: { ...process.env, MESH_DRAIN_SECONDS: '0', MESH_RATE_LIMIT_VERIFY: 'off' },
    stdio: ['ignore', stdout, 'ignore'],
  });
  t.after(() => {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  while (!(await isReady(url))) await delay(50);
  return { child, url };
}

async function expositionOf(url: string): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).status === 200;
  } catch {
    return false;
  }
}

/** Exit code and signal. */
async function stop(child: ChildProcess): Promise<unknown[]> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  return ended;
}

function openFile() {
  const folder = mkdtempSync(join(tmpdir(), 'log-output-'));
  const path = join(folder, 'output.log');
  const fd = openSync(path, 'a');
  return {
    fd,
    text: () => readFileSync(path, 'utf8'),
    [Symbol.dispose]() {
      closeSync(fd);
      rmSync(folder, { recursive: true });
    },
  };
}
