import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { logFile } from '../src/log/log-file.ts';

const LINES = Array.from({ length: 2000 }, (_, index) => `line ${index} of a log, with ü in it\n`);

test('lines reach the file in their order, and all of them once it is flushed', () => {
  using file = openFile();
  const log = logFile(file.fd);
  for (const line of LINES.slice(0, 10)) log.write(line);
  log.flushSync();
  assert.equal(file.text(), LINES.slice(0, 10).join(''));
});

test('a line that nothing follows is written within a moment', async () => {
  using file = openFile();
  const log = logFile(file.fd);
  log.write('alone\n');
  for (let waited = 0; file.text() === '' && waited < 60_000; waited += 20) await delay(20);
  assert.equal(file.text(), 'alone\n');
});

test('many chunks are written one behind the other', async () => {
  using file = openFile();
  const log = logFile(file.fd);
  for (const line of LINES) log.write(line);
  const all = LINES.join('');
  for (let waited = 0; file.text().length < all.length && waited < 60_000; waited += 20) {
    await delay(20);
  }
  assert.equal(file.text(), all);
});

test('what waits when the process exits is written', () => {
  const source = new URL('../src/log/log-file.ts', import.meta.url);
  const program = `
    import { logFile } from '${source}';
    const log = logFile(1);
    log.write('first\\n');
    log.write('last\\n');
    process.exit(3);`;
  const run = ['--import', 'tsx', '--input-type=module', '--eval', program];
  assert.throws(
    () => execFileSync(process.execPath, run, { encoding: 'utf8', stdio: 'pipe' }),
    ({ status, stdout }) => status === 3 && stdout === 'first\nlast\n',
  );
});

function openFile() {
  const folder = mkdtempSync(join(tmpdir(), 'log-file-'));
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
