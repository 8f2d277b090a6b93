/** Command names consist of a noun and a verb. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { commandReference, listedBelow } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';

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
