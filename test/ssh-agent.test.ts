/** An operator whose key is in an OpenSSH agent that runs here. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseOpensshKey } from '../src/base/keys/read-key.ts';
import { agentKey } from '../src/cli/connection/ssh-agent.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'mesh-agent-'));
const socket = join(folder, 'socket');
let agent: ChildProcess;
let na: TestAuthority;

before(async () => {
  agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
  process.once('exit', () => agent.kill('SIGKILL'));
  na = await startTestAuthority({ clock: REAL_TIME });
  while (!existsSync(socket)) await setTimeout(10);
});
after(async () => {
  const ended = once(agent, 'exit');
  agent.kill('SIGTERM');
  await Promise.all([ended, na.stop()]);
  for (const path of [folder, na.dataDir]) rmSync(path, { recursive: true, force: true });
});

function ssh(program: string, ...args: string[]): void {
  const environment = { ...process.env, SSH_AUTH_SOCK: socket };
  const { status, stderr } = spawnSync(program, args, { env: environment, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

/** Creates a key, adds it to the agent and removes its file; returns the public key. */
function heldKey(name: string, type = 'ed25519'): string {
  const file = join(folder, name);
  ssh('ssh-keygen', '-q', '-t', type, '-N', '', '-C', name, '-f', file);
  ssh('ssh-add', '-q', file);
  rmSync(file);
  return parseOpensshKey(readFileSync(`${file}.pub`, 'utf8'))?.toString('base64') ?? '';
}

function run(...args: string[]) {
  const environment = { MESH_URL: na.url, SSH_AUTH_SOCK: socket };
  return runCommand([...args, '--data-dir', na.dataDir], environment);
}

test('an operator signs with the agent, which has the only copy of the key', async () => {
  await assert.rejects(agentKey(socket, undefined), /The agent has no Ed25519 key/);
  heldKey('other-type', 'ecdsa');
  const key = heldKey('ops-agent');
  const file = join(folder, 'ops-agent.pub');
  const added = await run(
    ...['operator-key', 'add', 'ops-agent', '--public-key-file', file, '--tier', 'privileged'],
  );
  assert.equal(added.code, 0, added.stderr);
  const as = ['--agent', '--key-id', 'ops-agent'];
  const list = await run('operator-key', 'list', ...as, '--json');
  const published = await run(
    'policy',
    'publish',
    '--port',
    '443',
    '--yes',
    ...as,
    '--agent-key',
    key,
  );
  assert.equal(list.code, 0, list.stderr);
  assert.equal(JSON.parse(list.stdout).operator_keys[0].public_key, key);
  assert.equal(published.code, 0, published.stderr);
});

test('the agent signs plain Ed25519 over the bytes, of any length up to its limit', async () => {
  const key = heldKey('second');
  const signer = await agentKey(socket, key);
  assert.equal(signer.publicKey, key);
  for (const length of [0, 1, 1000, 200_000]) {
    const bytes = Buffer.alloc(length, 'é');
    const signature = Buffer.from(await signer.sign(bytes)).toString('base64');
    assert.ok(verifySignature(key, bytes, signature), `${length}`);
  }
  await assert.rejects(async () => signer.sign(Buffer.alloc(300_000)), /too long for the agent/);
});

test('a key that the agent does not have, and a missing agent, are reported differently', async () => {
  const at = ['--data-dir', na.dataDir, '--url', na.url];
  const here = [...at, '--agent-socket', socket];
  const list = ['operator-key', 'list', '--agent'];
  const stranger = Buffer.alloc(32, 9).toString('base64');
  for (const [args, message] of [
    [here, /has 2 Ed25519 keys; choose one with --agent-key/],
    [[...here, '--agent-key', stranger], /does not have the key/],
    [[...at, '--agent-socket', join(folder, 'nowhere')], /does not answer \(connect ENOENT/],
  ] as const) {
    const end = await endOf([...list, ...args]);
    assert.deepEqual([end.exit, end.code], [3, 'agent_unusable']);
    assert.match(end.message, message);
  }
  ssh('ssh-add', '-q', '-D');
  const none = await endOf([...list, ...here]);
  assert.match(none.message, /has no Ed25519 key/);
});

test('only Ed25519 keys of OpenSSH are read', () => {
  const line = readFileSync(join(folder, 'ops-agent.pub'), 'utf8');
  assert.equal(parseOpensshKey(line)?.length, 32);
  for (const text of ['', 'ssh-ed25519', 'ssh-ed25519 AAAA', line.replace('ssh-ed25519 ', '')]) {
    assert.equal(parseOpensshKey(text), null);
  }
  assert.equal(parseOpensshKey(readFileSync(join(folder, 'other-type.pub'), 'utf8')), null);
});
