/** A node that connects to its network for the first time, with a person at the terminal. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runAtTerminal } from './support/commands.ts';
import { ownFolder } from './support/folders.ts';
import { get, invite } from './support/requests.ts';
import { openTerminal, programLine } from './support/terminal.ts';

suite('node join without a root key, at a terminal', () => {
  const folder = ownFolder();
  let na: TestAuthority;
  let rootKey: string;
  let token: string;
  before(async () => {
    na = await startTestAuthority({ clock: REAL_TIME });
    rootKey = String(JSON.parse((await get(na, '/genesis')).text).root_public_key);
    token = await invite(na);
  });
  after(() => na[Symbol.asyncDispose]());

  const QUESTION = /The authority at [\s\S]*Trust it\? \[y\/N\] /;
  const join_ = (nodeDir: string) => [
    ...['node', 'join', '--url', na.url, '--node-dir', nodeDir, '--token', token],
  ];

  /** Answers the question on a real terminal; returns what was shown after that, and the exit code. */
  async function answered(nodeDir: string, answer: string) {
    await using terminal = openTerminal(programLine(join_(nodeDir)), { columns: 200 });
    const asked = await terminal.until(QUESTION);
    assert.ok(asked.includes(`belongs to network "alpha" with root key ${rootKey}.`), asked);
    assert.ok(!existsSync(nodeDir), 'nothing is saved before the answer');
    terminal.type(answer);
    const code = await terminal.ended;
    const shown = stripVTControlCharacters(terminal.shown());
    return { code, shown: shown.split('[y/N] ')[1] ?? '' };
  }

  for (const [name, answer] of [
    ['no', 'no\r'],
    ['nothing', '\r'],
    ['something else', 'yesterday\r'],
    ['the end of the input', '\x04'],
  ] as const) {
    test(`${name} refuses, and saves nothing`, async () => {
      const nodeDir = join(folder, name.replaceAll(' ', '-'));
      const answers = [[QUESTION, answer]] as const;
      const { code, shown } = await runAtTerminal(join_(nodeDir), { columns: 200, answers });
      assert.equal(code, EXIT.refused, shown);
      assert.match(stripVTControlCharacters(shown), /mesh-na: The root key was not accepted\n$/);
      assert.ok(!existsSync(nodeDir));
    });
  }

  test('an interruption refuses, and saves nothing', async () => {
    const nodeDir = join(folder, 'interrupted');
    const { code, shown } = await answered(nodeDir, '\x03');
    assert.equal(code, EXIT.refused, shown);
    assert.match(shown, /mesh-na: The root key was not accepted\r\n$/);
    assert.ok(!existsSync(nodeDir));
  });

  test('yes joins, and the folder is used from then on', async () => {
    const nodeDir = join(folder, 'node');
    const { code, shown } = await answered(nodeDir, 'yes\r');
    assert.equal(code, EXIT.done, shown);
    assert.match(shown, /Saved certificate .* of network "alpha" in /);
    const pinned = JSON.parse(readFileSync(join(nodeDir, 'genesis.json'), 'utf8'));
    assert.equal(pinned.root_public_key, rootKey);
    const status = ['node', 'status', '--url', na.url, '--node-dir', nodeDir];
    const later = await runAtTerminal(status);
    assert.equal(later.code, EXIT.done);
    assert.doesNotMatch(later.shown, /Trust it/);
  });
});
