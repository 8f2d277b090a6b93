/** How operators reach an authority: `connect`, profiles, `status`, and the commands that are printed for the other side. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { heartbeat, joinedNode, operate } from './support/requests.ts';
import { sharedScratch } from './support/shared-scratch.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const scratch = sharedScratch();

const rootKey = JSON.parse(readFileSync(join(na.dataDir, 'genesis.json'), 'utf8')).root_public_key;
const keyFile = (tier: string) => join(na.dataDir, 'keys', `operator-${tier}.key`);
const SIGNED = ['--url', na.url, '--data-dir', na.dataDir];

async function run(...args: string[]) {
  const environment = { XDG_CONFIG_HOME: scratch, MESH_DATA_DIR: join(scratch, 'no-data') };
  return runCommand(args, environment);
}

function connect(...more: string[]) {
  return run('connect', na.url, '--authority-key', na.audience, ...more);
}

function profiles(): string[] {
  const folder = join(scratch, 'mesh-na', 'profiles');
  return readdirSync(scratch).includes('mesh-na') ? readdirSync(folder) : [];
}

suite('connect', { concurrency: false }, () => {
  test('says which network answered, and what the key may do', async () => {
    const standard = ['--key-id', 'ops-standard', '--key-file', keyFile('standard')];
    const { code, stdout, stderr } = await connect(...standard, '--profile', 'a', '--json');
    assert.equal(code, 0, stderr);
    const { network_name, tier, key_id } = JSON.parse(stdout);
    assert.deepEqual([network_name, tier, key_id], ['alpha', 'standard', 'ops-standard']);
    const shown = await connect('--key-file', keyFile('privileged'), '--root-key', rootKey);
    assert.match(
      shown.stdout,
      /^The authority of network "alpha" knows this key: ops-privileged, privileged\.\nSaved profile "default"/,
    );
  });

  for (const [name, args, exit, message] of [
    [
      'another authority',
      ['--authority-key', rootKey, '--key-file', keyFile('standard')],
      4,
      /is the authority \S+ of network "alpha", not \S+; nothing was saved/,
    ],
    [
      'a key that the authority does not know',
      ['--authority-key', na.audience, '--key-file', keyFile('standard')],
      4,
      /belongs to ops-standard, not to ops-privileged: correct --key-file or --key-id/,
    ],
  ] as const) {
    test(`saves nothing for ${name}`, async () => {
      const before = profiles();
      const ended = await run('connect', na.url, ...args, '--profile', 'wrong');
      assert.equal(ended.code, exit);
      assert.match(ended.stderr, message);
      assert.deepEqual(profiles(), before);
    });
  }

  test('saves nothing without an answer, unless it is not to ask', async () => {
    const nowhere = ['connect', 'http://127.0.0.1:1', '--authority-key', na.audience];
    const far = [...nowhere, '--key-file', keyFile('standard'), '--profile', 'far'];
    assert.equal((await run(...far)).code, 5);
    assert.equal(profiles().includes('far.json'), false);
    assert.equal((await run(...far, '--offline')).code, 0);
    assert.equal(profiles().includes('far.json'), true);
  });

  test('profiles are listed, shown and removed', async () => {
    const list = async () => JSON.parse((await run('profile', 'list', '--json')).stdout);
    const names = async () => (await list()).profiles.map(({ name }: { name: string }) => name);
    assert.deepEqual(await names(), ['a', 'default', 'far']);
    assert.match((await run('profile', 'list')).stdout, /^PROFILE +ADDRESS +OPERATOR +AUTHORITY\n/);
    const { stdout } = await run('profile', 'show', 'a');
    assert.ok(stdout.startsWith(`url            ${na.url}\n`), stdout);
    assert.match(stdout, /^key_id +ops-standard$/m);
    assert.equal((await run('profile', 'remove', 'far')).code, 0);
    assert.deepEqual(await names(), ['a', 'default']);
    const again = await run('profile', 'remove', 'far');
    assert.deepEqual([again.code, /no profile "far"/.test(again.stderr)], [3, true]);
  });
});

test('without a data folder and a profile, a command says what is missing', async () => {
  const nothing = {
    XDG_CONFIG_HOME: join(scratch, 'none'),
    MESH_DATA_DIR: join(scratch, 'no-data'),
  };
  const { code, stderr } = await runCommand(['node', 'list', '--url', na.url], nothing);
  assert.equal(code, 3);
  assert.match(
    stderr,
    /so the authority key is not known; give the --data-dir .* or run mesh-na connect/,
  );
});

suite('the command for the other side', { concurrency: false }, () => {
  const join_ = `mesh-na node join --url ${na.url} --root-key ${rootKey} --token-file`;

  test('is complete for a node', async () => {
    const token = join(scratch, 'token');
    const { stderr } = await run('invite', 'create', '--out', token, ...SIGNED);
    assert.ok(stderr.endsWith(`On the node: ${join_} ${token}\n`), stderr);
    const shown = await run('invite', 'create', ...SIGNED);
    assert.ok(shown.stderr.endsWith(`On the node: ${join_} <file with the token>\n`), shown.stderr);
  });

  test('is the same from a profile that has the root key, and has a placeholder from another', async () => {
    const known = await run('invite', 'create');
    assert.ok(known.stderr.includes(join_), known.stderr);
    const unknown = await run('invite', 'create', '--profile', 'a');
    assert.match(unknown.stderr, /--root-key <root key> --token-file/);
  });

  test('is complete for an operator', async () => {
    const created = await run('operator-key', 'create', 'ops-2', '--key-dir', scratch);
    assert.equal(created.code, 0, created.stderr);
    const add = ['operator-key', 'add', 'ops-2', '--public-key-file', join(scratch, 'ops-2.pub')];
    const { stderr } = await run(...add, '--tier', 'standard', ...SIGNED);
    const line = stderr.trimEnd().split('\n').at(-1)?.trim() ?? '';
    const keys = `--authority-key ${na.audience} --root-key ${rootKey}`;
    const own = '--key-id ops-2 --key-file ops-2.key';
    assert.equal(line, `mesh-na connect ${na.url} ${keys} ${own}`);
    const [, ...words] = line.replace('ops-2.key', join(scratch, 'ops-2.key')).split(' ');
    assert.equal((await run(...words, '--profile', 'ops-2')).code, 0);
  });
});

suite('status', { concurrency: false }, () => {
  test('is one screen about the authority of a data folder', async () => {
    const node = await joinedNode(na);
    await heartbeat(na, node);
    await operate(na, '/admin/revoke', { cert_id: node.certId, reason: 'superseded' });
    const { code, stdout, stderr } = await run('status', ...SIGNED);
    assert.ok(code === 0 || code === 4, stderr);
    assert.match(
      stdout,
      /^(?:All is well|Needs attention)[\s\S]*\nnetwork +alpha at http\S+, as ops-privileged \(data folder \S+\)\nnodes +\d[\s\S]*\nbackup +none was scheduled[\s\S]*\nends +delegation in \d+d\n/,
    );
    assert.match(stdout, /^changes +\S+ +certificate_revoked +ops-privileged revoked /m);
    assert.ok(stdout.split('\n').length < 24);
  });

  test('is the same from a profile, which it names', async () => {
    const { stdout } = await run('status', '--json');
    const { network_name, profile, key_id, changes, findings, ends } = JSON.parse(stdout);
    assert.deepEqual([network_name, profile, key_id], ['alpha', 'default', 'ops-privileged']);
    assert.equal(changes[0].event_type, 'certificate_revoked');
    assert.ok(changes.length <= 5 && ends.length > 0 && Array.isArray(findings));
    assert.match((await run('status')).stdout, /\(profile "default"\)/);
  });

  test('has the same audit log from a profile as from its data folder, also until a time', async () => {
    const show = ['audit', 'show', '--type', 'certificate_revoked', '--json'];
    const [far, near, earlier] = [
      JSON.parse((await run(...show)).stdout),
      JSON.parse((await run(...show, '--data-dir', na.dataDir)).stdout),
      JSON.parse((await run(...show, '--until', '1h')).stdout),
    ];
    assert.ok(far.entries.length > 0);
    assert.deepEqual(far, near);
    assert.deepEqual(earlier, { entries: [] });
    assert.equal((await run(...show, '--until', '2100-01-01')).code, 0);
  });
});
