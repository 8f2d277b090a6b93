/** `mesh-na call`: each operation of the API as a command, derived from its declaration. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import type { Operation } from '../src/protocol/api/define.ts';
import { API } from '../src/protocol/api/table.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { scratchFolder } from './support/folders.ts';
import { newKey } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';

const shared = sharedAuthority({ clock: REAL_TIME });

async function call(...args: string[]) {
  const na = await shared();
  return runCommand(['call', ...args, '--data-dir', na.dataDir], { MESH_URL: na.url });
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads members of an answer it then asserts on
async function answer(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await call(...args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

test('every operation that answers JSON has a command, with an option for each member', () => {
  const { commands } = commandReference(buildProgram());
  for (const [name, { access, path, query, body, answer: form }] of Object.entries<Operation>(
    API,
  )) {
    const command = commands.find((each) => each.path === `call ${name}`);
    // The only one that is asked through a WebSocket.
    const isSocket = name === 'watchPage';
    if (access === 'node' || access === 'internal' || 'contentType' in form || isSocket) {
      assert.equal(command, undefined, name);
      continue;
    }
    const flags = command?.options.map(({ term }) => term.split(' ')[0]?.replace('target-', ''));
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, member = '']) => member);
    const members = [query, body].flatMap((schema) => Object.keys(schema?.properties ?? {}));
    for (const member of [...inPath, ...members]) {
      assert.ok(flags?.includes(`--${member.replaceAll('_', '-')}`), `${name} ${member}`);
    }
  }
});

test('members of path, query and body are sent, each in its form', async () => {
  const created = await answer(
    ...['createInvites', '--count', '2'],
    ...['--roles', 'role:client', '--roles', 'role:anchor', '--batch', '7'],
    ...['--labels', '{"zone":"eu"}'],
  );
  assert.equal(created.tokens.length, 2);
  const { invites } = await answer('listInvites', '--batch', '7', '--label', 'zone=eu');
  assert.deepEqual(invites[0].roles, ['role:client', 'role:anchor']);
  const page = await answer('listInvites', '--limit', '1');
  assert.deepEqual([page.invites.length, typeof page.next_cursor], [1, 'string']);
  const [{ token_fingerprint: fingerprint }] = invites;
  const withdrawn = await answer('withdrawInvite', '--fingerprint', fingerprint);
  assert.equal(withdrawn.token_fingerprint, fingerprint);
});

test('a body comes from a file, and options complete and replace its members', async () => {
  await using folder = scratchFolder();
  const file = join(folder.path, 'key.json');
  writeFileSync(file, JSON.stringify({ key_id: 'other', public_key: newKey().publicKey }));
  const args = ['--body', file, '--target-key-id', 'ops-west', '--tier', 'standard'];
  await answer('addOperatorKey', ...args);
  await answer('revokeOperatorKey', '--target-key-id', 'ops-west', '--reason', 'left');
  const { operator_keys } = await answer('listOperatorKeys');
  const row = operator_keys.find(({ key_id }: { key_id: string }) => key_id === 'ops-west');
  assert.deepEqual([row.tier, row.status], ['standard', 'revoked']);
});

for (const [what, args, code, message] of [
  [
    'a value that does not fit',
    ['createInvites', '--count', '0'],
    2,
    /--count .*must fit.*maximum/,
  ],
  ['another word', ['setOperatorKeyTier', '--tier', 'root'], 2, /--tier .*"standard"/],
  ['a member that is missing', ['withdrawInvite'], 2, /--fingerprint is missing/],
  ['an operation that does not exist', ['createInvite'], 2, /Did you mean createInvites/],
  ['a refusal', ['withdrawInvite', '--fingerprint', 'none'], 4, /invite/],
] as const) {
  test(`${what} ends the command with ${code}`, async () => {
    const ended = await call(...args);
    assert.deepEqual([ended.code, ended.stdout], [code, ''], ended.stderr);
    assert.match(ended.stderr, message);
  });
}

test('operations without members are called, too', async () => {
  const { url } = await shared();
  const texts = ['countNodes', 'readGenesis'].map(async (name) => {
    const { code, stdout, stderr } = await runCommand(['call', name], { MESH_URL: url });
    assert.equal(code, 0, stderr);
    return stdout;
  });
  const [nodes = '', genesis = ''] = await Promise.all(texts);
  assert.equal(JSON.parse(nodes).count, 0);
  assert.ok(JSON.parse(genesis).network_name);
});
