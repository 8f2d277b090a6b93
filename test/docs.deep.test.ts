/**
 * The documents: every transcript is what the program prints, and every link has a target. `MESH_UPDATE_TRANSCRIPTS=1`
 * writes the actual output into the documents instead of comparing it.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { makeCheckout } from './support/checkout.ts';
import { markdownFiles, readDocument } from './support/documents.ts';
import { ownPort } from './support/own-port.ts';
import { PROJECT_PATH as root } from './support/project.ts';
import { openShell, type Shell } from './support/shell.ts';
import {
  filesOf,
  masking,
  orderOfTimes,
  type Step,
  transcriptOf,
  withOutputs,
} from './support/transcripts.ts';

const scratch = mkdtempSync(join(tmpdir(), 'mesh-docs-'));
after(() => rmSync(scratch, { recursive: true, force: true }));
const isUpdate = process.env.MESH_UPDATE_TRANSCRIPTS === '1';

/** The documents of one list are run one after the other, in one folder and with the same authorities. */
const IN_CHECKOUTS = [
  ['README.md', 'docs/tutorial.md', 'docs/trust-protocol.md', 'docs/signing.md'],
];
/** The reader has only the program. */
const ELSEWHERE = [['docs/federation.md'], ['docs/runbooks.md']];
const READINGS = [...IN_CHECKOUTS, ...ELSEWHERE];

/** The ports in the documents and those used here, which may be opened long after they were found to be free. */
const PORTS = new Map([
  ['8443', String(await ownPort())],
  ['9443', String(await ownPort())],
]);

/** A transcript runs much faster than a person types, so rates are not limited. */
const ENVIRONMENT = {
  MESH_RATE_LIMIT_ADMIN: 'off',
  MESH_TRUST_CYCLE_HOURS: '0',
  MESH_THREADS: '1',
};

/** Commands that run until they are stopped, and the line that says that they are ready. */
const SERVER = /^(?:npm start|mesh-na serve)\b/;
const IS_SERVED = / is served on /;
/** Done by a service manager. */
const STOP = 'systemctl stop mesh-na';

const compiled = compile();
const commands = join(scratch, 'bin');
installCommand();

for (const documents of IN_CHECKOUTS) {
  suite(`the transcripts of ${documents.join(', ')}`, () => {
    const folder = readerFolder(documents);
    makeReaderFolder(folder);
    const atFirst = new Set(untrackedFiles(folder));
    checkTranscripts(folder, documents);
    test('git ignores what was written into the checkout', () => {
      const written = untrackedFiles(folder).filter((path) => !atFirst.has(path));
      assert.deepEqual(written, []);
    });
  });
}

for (const documents of ELSEWHERE) {
  suite(`the transcripts of ${documents.join(', ')}`, () => {
    const folder = readerFolder(documents);
    mkdirSync(folder);
    checkTranscripts(folder, documents);
  });
}

function readerFolder(documents: readonly string[]): string {
  return join(scratch, `reader-${READINGS.findIndex(([first]) => first === documents[0])}`);
}

function checkTranscripts(folder: string, documents: readonly string[]): void {
  const shell = openShell({ cwd: folder, env: environment() });
  after(() => shell[Symbol.asyncDispose]());
  for (const document of documents) {
    test(`${document} shows what is printed`, () => checkTranscript(shell, folder, document));
  }
}

test('every document with a transcript is read', () => {
  const holders = markdownFiles().filter((path) => transcriptOf(readDocument(path)).length > 0);
  assert.deepEqual(holders, READINGS.flat().sort());
});

/** Whether two ranks are in opposite order; two lines of the same instant may show the same time or different ones. */
function contradict(shown: readonly number[], order: readonly number[]): boolean {
  const sign = (ranks: readonly number[], i: number, j: number) =>
    Math.sign((ranks[i] ?? 0) - (ranks[j] ?? 0));
  return shown.some((_, i) => order.some((_, j) => sign(shown, i, j) * sign(order, i, j) < 0));
}

async function checkTranscript(shell: Shell, folder: string, document: string): Promise<void> {
  const markdown = readDocument(document);
  const steps = transcriptOf(markdown);
  const outputs = new Map<Step, string>();
  const [maskOutput, maskDocument] = [masking(), masking()];
  let isSame = true;
  for (const { name, text } of filesOf(markdown)) writeFileSync(join(folder, name), text);
  for (const [index, step] of steps.entries()) {
    const where = `${document}, line ${step.start}: ${step.command}`;
    const { output, code } = await perform(shell, step.command);
    const shown = asShown(output, folder);
    const isMeantToFail = steps[index + 1]?.command === 'echo $?';
    assert.ok(code === 0 || isMeantToFail, `${where} ended with ${code}: ${shown}`);
    outputs.set(step, shown);
    const [printed, expected] = [maskOutput(shown), maskDocument(step.printed)];
    if (isUpdate) isSame &&= printed === expected;
    else assert.equal(printed, expected, where);
  }
  const order = orderOfTimes([...outputs.values()].join('\n'));
  const shownOrder = orderOfTimes(steps.map(({ printed }) => printed).join('\n'));
  if (!isUpdate) {
    assert.equal(shownOrder.length, order.length, `the number of times in ${document}`);
    assert.ok(!contradict(shownOrder, order), `the order of the times in ${document}`);
  }
  // The whole document is replaced with the output of one run, because ids and times of two runs would contradict each
  // other.
  else if (!isSame || !isDeepStrictEqual(shownOrder, order)) {
    writeFileSync(join(root, document), withOutputs(markdown, outputs));
  }
}

async function perform(shell: Shell, command: string) {
  const here = onFreePorts(command);
  if (command === STOP) return shell.stop().then(() => ({ output: '', code: 0 }));
  if (!SERVER.test(command)) return shell.run(here);
  return { output: await shell.serve(here, IS_SERVED), code: 0 };
}

function onFreePorts(text: string): string {
  return [...PORTS].reduce((left, [shown, free]) => left.replaceAll(shown, free), text);
}

/** The output as documents show it to a reader with their own checkout. */
function asShown(output: string, folder: string): string {
  const local = output.replaceAll(folder, '<checkout>').replaceAll(scratch, '~');
  return [...PORTS].reduce(
    (left, [shown, free]) => left.replaceAll(`127.0.0.1:${free}`, `127.0.0.1:${shown}`),
    local,
  );
}

/** Compiles the program; returns the `dist` folder. */
function compile(): string {
  const folder = join(scratch, 'checkout');
  makeCheckout(folder);
  const dist = join(folder, 'dist');
  execFileSync(process.execPath, [join(folder, 'src', 'build', 'start.js'), '--version']);
  return dist;
}

/** Puts the compiled program on the path: each command of a transcript is a separate process. */
function installCommand(): void {
  mkdirSync(commands);
  const program = join(compiled, 'src', 'main.js');
  const script = `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`;
  writeFileSync(join(commands, 'mesh-na'), script, { mode: 0o755 });
}

/** A checkout that contains only the compiled program. */
function makeReaderFolder(folder: string): void {
  makeCheckout(folder);
  cpSync(join(root, '.gitignore'), join(folder, '.gitignore'));
  execFileSync('git', ['init', '--quiet'], { cwd: folder, env: environment() });
  cpSync(compiled, join(folder, 'dist'), { recursive: true });
}

/** The files that git would offer to add, according to only the project's `.gitignore`; here it tracks nothing. */
function untrackedFiles(folder: string): string[] {
  const args = ['-c', 'core.excludesFile=', 'ls-files', '--others', '--exclude-standard'];
  const listed = execFileSync('git', args, { cwd: folder, env: environment(), encoding: 'utf8' });
  return listed.split('\n').filter(Boolean);
}

function environment(): NodeJS.ProcessEnv {
  const port = String(PORTS.get('8443'));
  return {
    PATH: `${commands}:${process.env.PATH}`,
    HOME: scratch,
    LANG: 'C.UTF-8',
    npm_config_loglevel: 'silent',
    PORT: port,
    MESH_URL: `http://127.0.0.1:${port}`,
    ...ENVIRONMENT,
  };
}
