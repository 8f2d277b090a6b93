/** Commands are named by a noun and a verb, and work under their earlier names as before. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Command } from 'commander';
import { commandReference, listedBelow } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME, runProgram } from './support/child-server.ts';
import { endOf } from './support/failed-command.ts';

/** Every name that a command had, and the one that it has now. */
const RENAMED: readonly (readonly [string, string])[] = [
  ['revoke', 'certificate revoke'],
  ['revoke-operator-key', 'operator-key revoke'],
  ['nodes', 'node list'],
  ['attest', 'attestation issue'],
  ['revoke-attestation', 'attestation revoke'],
  ['attestations', 'attestation list'],
  ['verify-attestation', 'attestation verify'],
  ['agents', 'agent list'],
  ['node agent register', 'agent register'],
  ['node agent unregister', 'agent unregister'],
  ['trust-path', 'graph trace'],
  ['policy history', 'policy list'],
  ['data-usage policy', 'data-usage license'],
  ['data-usage intent', 'data-usage declare'],
];
/** What sets up or runs the program itself, or looks at the whole of it, is one word. */
const ALONE = ['init', 'serve', 'connect', 'doctor', 'completion', 'events', 'horizon', 'signer'];

function commandAt(path: string): Command {
  const found = path
    .split(' ')
    .reduce<Command | undefined>(
      (above, name) => above?.commands.find((command) => command.name() === name),
      buildProgram(),
    );
  assert.ok(found, path);
  return found;
}

/** As text: the functions that parse are made anew for each command. */
function takenBy(command: Command): string {
  const { options, registeredArguments } = command;
  return JSON.stringify([command.description(), registeredArguments, options], null, 1);
}

test('every command is a noun and a verb, but for those about the whole', () => {
  const paths = commandReference(buildProgram()).commands.map(({ path }) => path);
  const others = paths.filter((path) => path.split(' ').length !== 2);
  assert.deepEqual(others, ALONE);
});

test('no list of commands, and no suggestion, has an earlier name', async () => {
  const program = buildProgram();
  const listed = new Set(commandReference(program).commands.map(({ path }) => path));
  for (const [earlier, current] of RENAMED) {
    assert.ok(!listed.has(earlier), earlier);
    assert.ok(listed.has(current), current);
    assert.doesNotMatch(
      program.helpInformation(),
      new RegExp(`^  ${earlier} .*(<|\\[options)`, 'm'),
    );
  }
  assert.match((await endOf(['attestation-s'])).message, /Did you mean attestation\?/);
});

suite('a command takes under its earlier name what it takes now', () => {
  for (const [earlier, current] of RENAMED) {
    test(`${earlier} is ${current}`, async () => {
      const [then, now] = [commandAt(earlier), commandAt(current)];
      assert.equal(takenBy(then), takenBy(now));
      for (const wrong of [['--no-such-flag'], ['--url', 'nowhere'], ['a', 'b', 'c', 'd']]) {
        const ends = await Promise.all(
          [earlier, current].map((name) => endOf([...name.split(' '), ...wrong])),
        );
        assert.equal(ends[0]?.message, ends[1]?.message?.replaceAll(now.name(), then.name()));
        assert.deepEqual([ends[0]?.exit, ends[0]?.code], [ends[1]?.exit, ends[1]?.code]);
      }
    });
  }
});

test('the help of an earlier name says the present one', async () => {
  const { code, stdout } = await runProgram(['verify-attestation', '--help']);
  assert.equal(code, 0);
  assert.match(stdout, /^This command is now called mesh-na attestation verify\.\n\nUsage: /);
});

test('a real authority answers both names alike', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const settings = { MESH_URL: na.url, MESH_DATA_DIR: na.dataDir };
  const run = (name: string, ...more: readonly string[]) =>
    runProgram([...name.split(' '), ...more, '--json'], settings);
  for (const [earlier, current, ...more] of [
    ['nodes', 'node list'],
    ['trust-path', 'graph trace', 'local-mesh', 'nobody'],
  ] as const) {
    const [then, now] = await Promise.all([run(earlier, ...more), run(current, ...more)]);
    const masked = ({ stdout, stderr, code }: typeof then) =>
      [code, stdout, stderr].join('\n').replaceAll(/[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '');
    assert.equal(masked(then), masked(now), earlier);
  }
});

suite('the help of the program', () => {
  const groups = buildProgram().commands.filter(({ commands }) => commands.length > 0);

  test('shows its commands in groups, none of which is long', () => {
    const program = buildProgram();
    const help = program.createHelp();
    const listed = help.visibleCommands(program);
    const grouped = help.groupItems([...program.commands], listed, (each) => each.helpGroup());
    assert.ok(grouped.size > 4);
    assert.ok(!grouped.has(''));
    for (const [group, commands] of grouped) assert.ok(commands.length < 8, group);
  });

  test('a group alone prints its help', async () => {
    const { code, stdout, stderr } = await runProgram(['invite']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^Usage: mesh-na invite \[options\] \[command\]\n/);
  });

  for (const group of groups) {
    test(`${group.name()} alone does nothing`, async () => {
      const { exit, code, message } = await endOf([group.name()]);
      assert.deepEqual([exit, code, message], [2, 'usage', '']);
    });

    test(`${group.name()} suggests the command that was meant`, async () => {
      for (const command of listedBelow(group)) {
        const name = command.name();
        const misspelled = `${name.slice(0, 2)}${name.slice(3)}`;
        const { exit, message } = await endOf([group.name(), misspelled]);
        assert.equal(exit, 2);
        assert.match(message, new RegExp(`'${misspelled}'\\s\\(Did you mean .*\\b${name}\\b`));
      }
    });
  }
});
