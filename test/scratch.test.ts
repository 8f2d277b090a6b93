/** Temporary folders do not outlive their processes, however those end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { LOADER, modulePath } from './support/project.ts';
import { scratchFolder } from './support/scratch.ts';

const below = mkdtempSync(join(tmpdir(), 'mesh-na-below-'));
after(() => rmSync(below, { recursive: true, force: true }));
const PREFIX = 'mesh-na-scratch-';

/** A process that has such a folder and prints its path. */
async function startHolder() {
  const module = pathToFileURL(modulePath('test/support/scratch.ts')).href;
  const script = `
    import { writeFileSync } from 'node:fs';
    import { scratchFolder } from ${JSON.stringify(module)};
    const { path } = scratchFolder(${JSON.stringify(PREFIX)}, { below: ${JSON.stringify(below)} });
    writeFileSync(path + '/content', 'something');
    process.on('SIGTERM', () => process.exit(1));
    setInterval(() => undefined, 1000);
    process.stdout.write(path);`;
  const args = [...LOADER, '--input-type=module', '--eval', script];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [path] = await once(child.stdout, 'data');
  return {
    path: String(path),
    async end(signal: NodeJS.Signals) {
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    },
  };
}

test('a folder is removed with its process, and after a kill by the next one; folders in use stay', async () => {
  const [stopped, killed, living] = [await startHolder(), await startHolder(), await startHolder()];
  const foreign = join(below, `${PREFIX}foreign`);
  mkdirSync(foreign);
  writeFileSync(join(foreign, 'content'), 'of somebody else');
  await stopped.end('SIGTERM');
  assert.equal(existsSync(stopped.path), false);
  await killed.end('SIGKILL');
  assert.equal(existsSync(killed.path), true);

  const own = scratchFolder(PREFIX, { below });
  assert.equal(existsSync(killed.path), false);
  for (const path of [living.path, own.path, foreign]) assert.equal(existsSync(path), true, path);
  own.remove();
  assert.equal(existsSync(own.path), false);
  await living.end('SIGTERM');
});
