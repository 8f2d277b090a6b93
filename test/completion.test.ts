/** Command-line completion in the shells themselves. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { runCommand } from './support/commands.ts';
import { findProgram } from './support/programs.ts';
import { openTerminal, shellLine } from './support/terminal.ts';

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
