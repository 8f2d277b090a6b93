/**
 * How operators reach an authority: `connect`, addresses, profiles and the keys that they follow, `status`, and the commands
 * that are printed for the other side.
 */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { startTestAuthority } from './support/authority.ts';
import { chainOf, FIRST, HOUR, ROOT, START, type Step } from './support/authority-chain.ts';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { networkFolder, scratchFolder, sharedScratch } from './support/folders.ts';
import { heartbeat, joinedNode, operate, outcome } from './support/requests.ts';
import { startSuccessionAuthority } from './support/succession-authority.ts';
import { activated, stage, step, succession } from './support/successions.ts';
import { importFeed, sovereign } from './support/trust.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
after(() => na.stop());
const scratch = sharedScratch();

const rootKey = JSON.parse(readFileSync(join(na.dataDir, 'genesis.json'), 'utf8')).root_public_key;
const keyFile = (tier: string) => join(na.dataDir, 'keys', `operator-${tier}.key`);
const SIGNED = ['--url', na.url, '--data-dir', na.dataDir];

const environment = { XDG_CONFIG_HOME: scratch, MESH_DATA_DIR: join(scratch, 'no-data') };

async function run(...args: string[]) {
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

test('a command that reaches another authority says which', async () => {
  await using other = await startTestAuthority({ clock: REAL_TIME });
  const refused = await run('node', 'list', '--url', other.url, '--data-dir', na.dataDir);
  assert.equal(refused.code, 4);
  assert.equal(
    refused.stderr,
    `mesh-na: Another authority answers at ${other.url}: its key is ${other.audience}, not ${na.audience}\n  Check the address.\n`,
  );
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
    // What was refused has changed nothing.
    const beta = sovereign('beta');
    const feed = beta.feed(na.clock.now(), 1);
    const refused = {
      issuer_public_keys: [beta.key.publicKey],
      expected_issuer_sovereign_id: 'no',
    };
    assert.equal(outcome(await importFeed(na, feed, refused)), '400 wrong_issuer');
    const { code, stdout, stderr } = await run('status', ...SIGNED);
    assert.ok(code === 0 || code === 4, stderr);
    assert.match(
      stdout,
      /^(?:All is well|Needs attention)[\s\S]*\nnetwork +alpha at http\S+, as ops-privileged \(data folder \S+\)\nnodes +\d[\s\S]*\nbackup +none was verified[\s\S]*\nends +delegation in \d+d\n/,
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

// Commands find the authority that is served on another port or address than the default one.

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

// Which authority a command asks: that of an option, then of a variable, then of a profile.

after(() => na.stop());

const NOWHERE = 'http://127.0.0.1:1';
async function saveProfile(url: string, profile: string) {
  const saved = await runCommand(
    [
      ...['connect', url, '--key-file', keyFile('privileged'), '--authority-key', na.audience],
      ...['--profile', profile, '--offline'],
    ],
    environment,
  );
  assert.equal(saved.code, 0, saved.stderr);
}

test('an option comes before a variable, and a variable before the default profile', async () => {
  await joinedNode(na);
  await saveProfile(NOWHERE, 'default');
  await saveProfile(na.url, 'here');
  const missing = join(scratch, 'missing.pem');
  for (const [args, variables, expected] of [
    [[], {}, EXIT.unreachable],
    [[], { MESH_URL: na.url }, EXIT.done],
    [['--url', na.url], { MESH_URL: NOWHERE }, EXIT.done],
    [['--url', NOWHERE], { MESH_URL: na.url }, EXIT.unreachable],
    // A profile that is named by an option is one.
    [['--profile', 'here'], { MESH_URL: NOWHERE }, EXIT.done],
    [[], { MESH_PROFILE: 'here' }, EXIT.done],
    [[], { MESH_PROFILE: 'here', MESH_URL: NOWHERE }, EXIT.unreachable],
    [[], { MESH_URL: na.url, MESH_CA: missing }, EXIT.unusable],
    [[], { MESH_URL: na.url, MESH_OPERATOR_KEY_FILE: missing }, EXIT.unusable],
  ] as const) {
    const given = { ...environment, ...variables };
    const { code, stderr } = await runCommand(['node', 'list', ...args], given);
    assert.equal(code, expected, `${args.join(' ')} ${JSON.stringify(variables)}: ${stderr}`);
  }
});

test('an empty variable is none', async () => {
  await saveProfile(na.url, 'default');
  const empty = {
    ...{ MESH_URL: '', MESH_CA: '', MESH_PROFILE: '', MESH_OPERATOR_KEY_ID: '' },
    ...{ MESH_OPERATOR_KEY_FILE: '', SSH_AUTH_SOCK: '' },
  };
  const { code, stderr } = await runCommand(['node', 'list'], { ...environment, ...empty });
  assert.equal(code, EXIT.done, stderr);
  const agent = await runCommand(['node', 'list', '--agent'], { ...environment, ...empty });
  assert.match(agent.stderr, /--agent needs SSH_AUTH_SOCK/);
});

// A profile follows its authority from the key that it pinned [authority-keys-7].

/** An operator on another machine who knows this key of the authority. */
function operatorOf(scratch: string, url: string, keyFile: string) {
  const config = ['--config-home', scratch];
  return {
    connect: (key: string, ...more: string[]) =>
      runCommand([
        'connect',
        url,
        '--authority-key',
        key,
        '--key-file',
        keyFile,
        ...config,
        ...more,
      ]),
    list: () => runCommand(['node', 'list', '--data-dir', join(scratch, 'nowhere'), ...config]),
    profile: () => readFileSync(join(scratch, 'mesh-na', 'profiles', 'default.json'), 'utf8'),
  };
}

test('a profile follows several changes, even after a theft, and never goes back', async () => {
  await using scratch = scratchFolder();
  // Commands use the real time, so each change must have happened by then.
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const first = na.audience;
  const keyFile = join(na.dataDir, 'keys', 'operator-privileged.key');
  const operator = operatorOf(scratch.path, na.url, keyFile);
  assert.equal((await operator.connect(first)).code, 0);
  let operated = na;
  for (const kind of ['planned', 'planned', 'compromise'] as const) {
    const signed = await succession(operated, { kind });
    assert.equal(outcome(await stage(operated, signed)), '200');
    await activated(operated);
    operated = { ...operated, audience: signed.statement.to_key };
    if (kind === 'planned') assert.equal(outcome(await step(operated, 'finish')), '200');
    const listed = await operator.list();
    assert.equal(listed.code, 0, listed.stderr);
    assert.match(listed.stderr, /^mesh-na: The authority's key was replaced by /);
    assert.equal(JSON.parse(operator.profile()).authority_key, signed.statement.to_key);
    assert.equal((await operator.list()).stderr, '', 'once');
  }
  const learned = JSON.parse(operator.profile());
  assert.equal((await operator.connect(first)).code, 0);
  const again = JSON.parse(operator.profile());
  assert.deepEqual(again, learned, 'a key from before leads to the same authority');
});

test('a profile accepts nothing of a fork, a shorter chain, or an unvouched one', async () => {
  await using scratch = scratchFolder();
  await using na = await startSuccessionAuthority();
  await using keys = await startTestAuthority();
  na.clock.step(Date.now() - na.clock.now());
  na.instead.set('/admin/certificates', () => ({ count: 0, certificates: [] }));
  const keyFile = join(keys.dataDir, 'keys', 'operator-privileged.key');
  const operator = operatorOf(scratch.path, na.url, keyFile);
  const hours = (Date.now() - START) / HOUR;
  const chain = (kind: Step['kind'], ago: number) => chainOf([{ kind, at: hours - ago }]);
  assert.equal((await operator.connect(FIRST.publicKey, '--offline')).code, 0);

  async function assertRefused(why: RegExp): Promise<void> {
    const before = operator.profile();
    const { code, stderr } = await operator.list();
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^mesh-na: Profile "default" keeps the authority key \S+=, because /);
    assert.match(stderr, why);
    assert.equal(operator.profile(), before);
  }

  na.successions = chain('compromise', 1);
  await assertRefused(
    /pin the root key of the network\. Run mesh-na connect again with --root-key\.$/m,
  );
  const rooted = await operator.connect(FIRST.publicKey, '--offline', '--root-key', ROOT.publicKey);
  assert.equal(rooted.code, 0, rooted.stderr);
  const [stolen] = na.successions;
  assert.match((await operator.list()).stderr, /because it was compromised/);
  assert.equal(JSON.parse(operator.profile()).authority_key, stolen?.to_key);

  na.successions = chain('compromise', 2);
  await assertRefused(/same sequence as another signed statement; do not use it/);
  na.successions = [];
  await assertRefused(/old copy/);
});
