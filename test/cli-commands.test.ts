/** The commands as a whole: their names and help, `mesh-na call` for each operation, and completion in shells. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { commandReference, listedBelow } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import type { Operation } from '../src/protocol/api/define.ts';
import { API } from '../src/protocol/api/table.ts';
import { sharedAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';
import { scratchFolder } from './support/folders.ts';
import { findProgram } from './support/programs.ts';
import { newKey } from './support/requests.ts';
import { openTerminal, shellLine } from './support/terminal.ts';

/** Commands that set up, run or inspect the program itself are a single word. */
const ALONE = [
  'init',
  'serve',
  'doctor',
  'completion',
  'status',
  'connect',
  'console',
  'events',
  'history',
  'horizon',
  'signer',
];

test('every command is a noun and a verb, except those about the whole service', () => {
  const paths = commandReference(buildProgram()).commands.map(({ path }) => path);
  const others = paths.filter((path) => path.split(' ').length !== 2);
  assert.deepEqual(others, ALONE);
});

test('a misspelled command gets a suggestion', async () => {
  assert.match((await endOf(['attestation-s'])).message, /Did you mean attestation\?/);
});

suite('the help of the program', () => {
  const groups = listedBelow(buildProgram()).filter(({ commands }) => commands.length > 0);

  test('shows its commands in short groups', () => {
    const program = buildProgram();
    const help = program.createHelp();
    const listed = help.visibleCommands(program);
    const grouped = help.groupItems([...program.commands], listed, (each) => each.helpGroup());
    assert.ok(grouped.size > 4);
    assert.ok(!grouped.has(''));
    for (const [group, commands] of grouped) assert.ok(commands.length < 8, group);
  });

  test('describes once how an authority is reached, and leaves long lists to the shell', async () => {
    const help = (path: string[]) => {
      const command = path.reduce(
        (at, name) => listedBelow(at).find((each) => each.name() === name) ?? assert.fail(name),
        buildProgram(),
      );
      return command.helpInformation();
    };
    for (const path of [
      ['invite', 'create'],
      ['graph', 'show'],
      ['policy', 'list'],
    ]) {
      assert.match(help(path), /\nConnection options: mesh-na help connection\n$/);
      assert.doesNotMatch(help(path), /--url|--key-file|--wait/);
    }
    assert.doesNotMatch(help(['audit', 'show']), /invite_withdrawn/);
    const { stdout } = await runCommand(['help', 'connection']);
    for (const option of ['--url <url>', '--ca <file>', '--wait', '--key-file', '--profile']) {
      assert.ok(stdout.includes(`  ${option}`), option);
    }
    const listed = await runCommand(['help', 'node', 'list']);
    assert.match(listed.stdout, /^Usage: mesh-na node list\|ls \[options\]\n/);
  });

  test('a group alone prints its help', async () => {
    const { code, stdout, stderr } = await runCommand(['invite']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^Usage: mesh-na invite \[options\] \[command\]\n/);
  });

  const program = buildProgram();
  for (const group of groups) {
    test(`${group.name()} alone does nothing, and suggests the intended command`, async () => {
      const { exit, code, message } = await endOf([group.name()], program);
      assert.deepEqual([exit, code, message], [2, 'usage', '']);
      for (const command of listedBelow(group)) {
        const name = command.name();
        const misspelled = `${name.slice(0, 2)}${name.slice(3)}`;
        const { exit, message } = await endOf([group.name(), misspelled], program);
        assert.equal(exit, 2);
        assert.match(message, new RegExp(`'${misspelled}'\\s\\(Did you mean .*\\b${name}\\b`));
      }
    });
  }
});

// `mesh-na call`: each operation of the API as a command, derived from its declaration.

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

// Command-line completion in the shells themselves.

const folder = mkdtempSync(join(tmpdir(), 'mesh-na-completion-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** What the program answers is in files that are named after its words. Any other command prints its words. */
const answers = join(folder, 'answers');
const STUB = `mesh-na() { if [ "$1" = complete ]; then cat "${answers}/$*"; else echo "[$*]"; fi; }`;

async function saved(shell: string): Promise<string> {
  const path = join(folder, `mesh-na.${shell}`);
  const { stdout } = await runCommand(['completion', shell]);
  writeFileSync(path, stdout);
  return path;
}

/** A line up to the cursor, and what the shell completes it to when Tab is pressed. */
const COMPLETED = [
  ['mesh-na attest', 'mesh-na attestation '],
  ['mesh-na attestation ver', 'mesh-na attestation verify '],
  ['mesh-na --version operator-key rev', 'mesh-na --version operator-key revoke '],
  ['mesh-na treaty list --sta', 'mesh-na treaty list --status '],
  ['mesh-na treaty list --status rev', 'mesh-na treaty list --status revoked '],
  ['mesh-na consensus vote j.json app', 'mesh-na consensus vote j.json approve '],
  ['mesh-na treaty verify reco', 'mesh-na treaty verify record.json '],
] as const;

before(async () => {
  mkdirSync(answers);
  for (const [typed] of COMPLETED) {
    const asked = ['complete', '--', ...typed.split(' ').slice(1)];
    const { code, stdout } = await runCommand(asked);
    assert.equal(code, 0);
    writeFileSync(join(answers, asked.join(' ')), stdout);
  }
});

for (const [shell, start] of [
  ['bash', ['--norc', '-i']],
  ['zsh', ['-f', '-i']],
] as const) {
  const found = findProgram([shell], process.env);
  const skip = found === null && `${shell} is not installed`;

  test(`${shell} completes commands, options, their values and files`, { skip }, async () => {
    writeFileSync(join(folder, 'record.json'), '{}');
    const line = `env HOME=${folder} PS1='ready>' ${shellLine([found ?? '', ...start])}`;
    await using terminal = openTerminal(line, { columns: 200 });
    const ready = () => terminal.until(/ready>/);
    await ready();
    if (shell === 'zsh') {
      terminal.type(`PS1='ready>'; unsetopt zle_bracketed_paste; autoload -U compinit\n`);
      await ready();
      terminal.type('compinit -u -D\n');
      await ready();
    }
    terminal.type(`cd ${folder}; source ${await saved(shell)}; ${STUB}\n`);
    await terminal.until(/ready>(?![\s\S]*ready>)/);
    for (const [typed, completed] of COMPLETED) {
      terminal.type(`${typed}\t`);
      await terminal.until(new RegExp(completed.trimEnd()));
      terminal.type('\n');
      const given = completed.trimEnd().slice('mesh-na '.length);
      await terminal.until(new RegExp(`\\[${given}\\]`));
      await ready();
    }
  });
}

const fish = findProgram(['fish'], process.env);

suite('fish', { skip: fish === null && 'fish is not installed' }, () => {
  const candidates = async (line: string): Promise<string[]> => {
    const stub = `function mesh-na; cat "${answers}/$argv"; end`;
    const asked = `${stub}; source ${await saved('fish')}; complete -C '${line}'`;
    const home = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
    const output = execFileSync(fish ?? '', ['--no-config', '-c', asked], {
      cwd: folder,
      env: home,
      encoding: 'utf8',
    });
    return output.split('\n').flatMap((row) => row.split('\t')[0] ?? []);
  };

  for (const [typed, completed] of COMPLETED.slice(0, -1)) {
    test(`completes ${typed}`, async () => {
      const word = completed.trimEnd().split(' ').at(-1);
      assert.deepEqual((await candidates(typed)).filter(Boolean), [word]);
    });
  }
});

test('the command prints the script, as text or in JSON', async () => {
  const [text, json] = await Promise.all([
    runCommand(['completion', 'bash']),
    runCommand(['completion', 'bash', '--json']),
  ]);
  assert.match(text.stdout, /^complete .* mesh-na$/m);
  assert.deepEqual(JSON.parse(json.stdout), { shell: 'bash', script: text.stdout });
});
