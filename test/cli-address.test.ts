/** Commands find the authority that is served on another port or address than the default one. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { withoutSettings } from './support/isolation.ts';
import { ownPort } from './support/own-port.ts';
import { PROGRAM } from './support/project.ts';

const folder = mkdtempSync(join(tmpdir(), 'mesh-na-address-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const environment = { ...withoutSettings(process.env), XDG_CONFIG_HOME: join(folder, 'config') };

function started(args: readonly string[], variables: NodeJS.ProcessEnv = {}) {
  return spawn(process.execPath, [...PROGRAM, ...args], {
    cwd: folder,
    env: { ...environment, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Standard output of a command that succeeds. */
async function done(...args: string[]): Promise<string> {
  const child = started(args);
  const ended = once(child, 'close');
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  assert.deepEqual((await ended)[0], 0, `${args.join(' ')}: ${errors}`);
  return out;
}

test('a service on another port is found by the commands that follow, in its folder and in that of a node', async (t) => {
  const port = String(await ownPort());
  const server = started(['serve', '--create', '--json'], { PORT: port });
  const ended = once(server, 'close');
  t.after(() => server.kill('SIGKILL'));
  await once(server.stdout, 'data');

  await done('invite', 'create', '--name', 'web-1', '--out', 'token');
  await done('node', 'join', '--genesis', 'mesh-data/genesis.json', '--token-file', 'token');
  assert.match(await done('node', 'heartbeat'), /^Heartbeat acknowledged/);
  assert.match(await done('node', 'list'), / web-1 /);
  assert.match(await done('status'), new RegExp(`^network +local-mesh at \\S+:${port}, as `, 'm'));
  assert.match(await done('graph', 'show'), /Sovereigns: /);

  server.kill('SIGTERM');
  await ended;
  assert.ok(!existsSync(join(folder, 'mesh-data', 'address')), 'nothing is served there');
  const late = started(['node', 'heartbeat']);
  assert.match(
    await text(late.stderr),
    new RegExp(`^mesh-na: No answer .*:${port} `),
    'of the node',
  );
});

test('a service whose address can be neither saved nor removed stops as any other', async (t) => {
  const dataDir = join(folder, 'other');
  await done('init', '--data-dir', dataDir);
  mkdirSync(join(dataDir, 'address'));
  const server = started(['serve', '--json', '--data-dir', dataDir], { PORT: '0' });
  const ended = once(server, 'close');
  t.after(() => server.kill('SIGKILL'));
  await once(server.stdout, 'data');
  server.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});
