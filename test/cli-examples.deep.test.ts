/**
 * Every example of every help text is a right use: its command runs in an empty folder, against a network, up to what it
 * does not find there, such as a file that the example names.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Command } from 'commander';
import { filled } from '../src/cli/kernel/command.ts';
import { buildProgram } from '../src/cli/program.ts';
import { startTestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { invite, newKey } from './support/requests.ts';

const na = await startTestAuthority({ clock: REAL_TIME });
const KEY = newKey().publicKey;

/** They wait for a signal: only their arguments and options are read. */
const ENDLESS =
  /^mesh-na (?:serve|console|signer|node run|events --follow|node heartbeat --every|authority-key status .*--watch)\b/;

function examplesIn(command: Command): string[] {
  const below = filled(command).commands;
  if (below.length > 0) return below.flatMap((each) => examplesIn(each));
  const shown: string[] = [];
  command.configureOutput({ writeOut: (text) => void shown.push(text) }).outputHelp();
  const lines = shown.join('').split('\n');
  return lines.flatMap((line) => /^ {2}\$ (.*)$/.exec(line)?.[1] ?? []);
}

/** The words of the first command of a line that is for a shell. */
function wordsOf(line: string): string[] {
  const [first = ''] = line.split(/ (?:\||&&|>) /);
  const variables = [...first.matchAll(/\$(?:\{?)(\w+)/g)].map(([, name = '']) => [name, KEY]);
  const command = first.replace(/^(?:[A-Z_]+=\S+ )*/, '').replace(/^mesh-na /, "printf '%s\\0' ");
  const env = { ...process.env, ...Object.fromEntries(variables) };
  const words = execFileSync('/bin/sh', ['-c', command], { env, encoding: 'utf8' }).split('\0');
  return words.slice(0, -1).map((word) => word.replace(/^https?:\/\/[\w.-]+example$/, na.url));
}

/** Reads the arguments and options as the command does, without running it. */
async function parses(words: readonly string[]): Promise<void> {
  const program = buildProgram();
  program.hook('preAction', () => {
    throw new Error('parsed');
  });
  await assert.rejects(program.parseAsync(words, { from: 'user' }), { message: 'parsed' });
}

const environment = { MESH_URL: na.url, MESH_DATA_DIR: na.dataDir };

test('the examples of all help texts are right uses of their commands', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-examples-'));
  const before = process.cwd();
  t.after(async () => {
    process.chdir(before);
    rmSync(folder, { recursive: true, force: true });
    await na.stop();
  });
  const examples = examplesIn(buildProgram());
  assert.ok(examples.length > 100, String(examples.length));
  await invite(na);
  for (const line of examples) {
    await t.test(line, async () => {
      assert.match(line, /^(?:[A-Z_]+=\S+ )*mesh-na /);
      const words = wordsOf(line);
      // Earlier examples leave files behind.
      process.chdir(mkdtempSync(join(folder, 'example-')));
      if (ENDLESS.test(line.replace(/^(?:[A-Z_]+=\S+ )*/, ''))) return parses(words);
      const { code, stderr } = await runCommand(words, environment);
      // Nobody at a terminal confirms it.
      const isAsked = code === 2 && /: add --yes|^mesh-na: Add --yes/.test(stderr);
      assert.ok(isAsked || (code !== 1 && code !== 2), `${code}: ${stderr}`);
    });
  }
});
