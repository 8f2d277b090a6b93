/** Commands find the authority that is served on another port or address than the default one. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { runCommand } from './support/commands.ts';
import { networkFolder } from './support/folders.ts';

// All of them are in the folder of this test.
after(() => rmSync('mesh-data', { recursive: true, force: true }));

/** Standard output of a command that succeeds. */
async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(args);
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
  return stdout;
}

test('a service on another port is found by the commands that follow, in its folder and in that of a node', async () => {
  const server = await startChildServer('mesh-data', { args: ['--create'] });
  const { port } = new URL(server.na.url);

  await done('invite', 'create', '--name', 'web-1', '--out', 'token');
  await done('node', 'join', '--genesis', 'mesh-data/genesis.json', '--token-file', 'token');
  assert.match(await done('node', 'heartbeat'), /^Heartbeat acknowledged/);
  assert.match(await done('node', 'list'), / web-1 /);
  assert.match(await done('status'), new RegExp(`^network +local-mesh at \\S+:${port}, as `, 'm'));
  assert.match(await done('graph', 'show'), /\d sovereigns?, /);

  await server.end('SIGTERM');
  assert.ok(!existsSync('mesh-data/address'), 'nothing is served there');
  const { stderr } = await runCommand(['node', 'heartbeat']);
  assert.match(stderr, new RegExp(`^mesh-na: No answer .*:${port} `), 'of the node');
});

test('a service whose address can be neither saved nor removed stops as any other', async () => {
  await using folder = networkFolder('alpha');
  mkdirSync(join(folder.path, 'address'));
  const server = await startChildServer(folder.path, { environment: NO_LIMITS });
  assert.equal((await server.end('SIGTERM')).code, 0);
});
