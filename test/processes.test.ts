/** Processes that tests start end with them, even if the runner kills a file that hangs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { networkFolder } from './support/folders.ts';
import { childrenOf, isRunning, spawnNode } from './support/processes.ts';
import { LOADER, modulePath } from './support/project.ts';

const urlOf = (path: string) => pathToFileURL(path).href;

/** A test file that starts a server and a browser, and then hangs. */
const HANGING = `
  import { startBrowser } from '${urlOf(modulePath('test/support/browser.ts'))}';
  import { startChildServer } from '${urlOf(modulePath('test/support/child-server.ts'))}';
  await startChildServer(process.argv[1]);
  await startBrowser();
  process.stderr.write('hanging');
  setImmediate(() => { for (;;); });`;

const canSee = existsSync('/proc/self/task');

test('servers and browsers of a test process end when it is killed', {
  skip: !canSee,
}, async () => {
  await using folder = networkFolder('alpha');
  const args = [...LOADER, '--input-type=module', '--eval', HANGING, folder.path];
  const hanging = spawnNode(args, { stdio: ['ignore', 'ignore', 'pipe'] });
  assert.ok(hanging.stderr !== null && hanging.pid !== undefined);
  const [said] = await once(hanging.stderr, 'data');
  assert.equal(String(said), 'hanging');
  const started = childrenOf(hanging.pid);
  assert.ok(started.length >= 2, 'a server and a browser');
  const ended = once(hanging, 'exit');
  hanging.kill('SIGTERM');
  assert.deepEqual(await ended, [null, 'SIGTERM']);
  // If this never happens, the runner's time limit ends it.
  while (started.some(isRunning)) await delay(20);
});
