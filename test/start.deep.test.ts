/** `npm start` and `npm run mesh-na` compile the program when the sources have changed; a start that fails late ends it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { notLoaded } from '../src/base/native-parts.ts';
import { freePort } from '../src/edge/http/free-port.ts';
import { makeCheckout } from './support/checkout.ts';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { ownNetwork } from './support/folders.ts';
import { LATE_START_THROWS } from './support/injected-faults.ts';
import { childrenOf, isRunning, spawnNode } from './support/processes.ts';
import { sharedCluster } from './support/shared-cluster.ts';

const COMPILING = 'Compiling the program, since its sources are new or have changed.\n';
const UNUSABLE = 3;

const scratch = mkdtempSync(join(tmpdir(), 'mesh-start-'));
const children = new Set<ChildProcess>();
after(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});

const compiled = copyOf('compiled');
const uncompiled = copyOf('uncompiled');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The version that `npm run mesh-na` prints, from the process that npm starts. */
function version(folder: string): Promise<Ended> {
  return endOf(spawnNode(['src/build/start.js', '--version'], { cwd: folder, stdio: 'pipe' }));
}

async function endOf(child: ChildProcess): Promise<Ended> {
  children.add(child);
  const [stdout, stderr]: [string[], string[]] = [[], []];
  child.stdout?.setEncoding('utf8').on('data', (text: string) => stdout.push(text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => stderr.push(text));
  const [code] = await once(child, 'close');
  children.delete(child);
  return { code: code as number | null, stdout: stdout.join(''), stderr: stderr.join('') };
}

function copyOf(name: string, lacking: readonly string[] = []): string {
  const folder = join(scratch, name);
  makeCheckout(folder, lacking);
  return folder;
}

/** The contents of the folder of programs, including the one that `npm start` would run. */
function programsOf(folder: string): string[] {
  return readdirSync(join(folder, 'dist', 'program'));
}

test('two simultaneous first starts compile, and leave one complete program', async () => {
  const ends = await Promise.all([version(compiled), version(compiled)]);
  for (const { code, stdout, stderr } of ends) {
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
    assert.equal(stderr, COMPILING);
  }
  assert.equal(programsOf(compiled).length, 1);
});

test('a program of the same sources is not compiled again, whatever the times of the files', async () => {
  const main = join(compiled, 'src', 'cli', 'main.ts');
  const later = new Date(Date.now() + 3_600_000);
  utimesSync(main, later, later);
  assert.equal((await version(compiled)).stderr, '');
  const earlier = new Date(0);
  utimesSync(main, earlier, earlier);
  assert.equal((await version(compiled)).stderr, '');
});

test('a changed source is compiled, and the program of a running server stays', async () => {
  const folder = copyOf('changed');
  cpSync(join(compiled, 'dist'), join(folder, 'dist'), { recursive: true });
  const [before] = programsOf(folder);
  const source = join(folder, 'src', 'cli', 'main.ts');
  writeFileSync(source, `${readFileSync(source, 'utf8')}\nprocess.stdout.write('changed\\n');\n`);
  const { stdout, stderr } = await version(folder);
  assert.match(stdout, /\nchanged\n$/);
  assert.equal(stderr, COMPILING);
  assert.equal(programsOf(folder).length, 2);
  assert.ok(programsOf(folder).includes(String(before)));
});

test('the remains of a killed compilation are not used as the program', async () => {
  const folder = copyOf('killed');
  const programs = join(folder, 'dist', 'program');
  mkdirSync(programs, { recursive: true });
  const begun = new Promise<string>((resolve) => {
    const watcher = watch(programs, (_, name) => {
      watcher.close();
      resolve(String(name));
    });
  });
  const child = spawnNode(['src/build/start.js', '--version'], { cwd: folder, stdio: 'pipe' });
  const killed = endOf(child);
  const left = await begun;
  child.kill('SIGKILL');
  assert.equal((await killed).code, null);
  assert.match(left, /^\.unfinished-/);
  assert.deepEqual(programsOf(folder), [left]);

  assert.equal((await version(folder)).code, 0);
  assert.equal(programsOf(folder).length, 2);
  // Once it is old, the next compilation removes it.
  utimesSync(join(programs, left), 0, 0);
  writeFileSync(join(folder, 'src', 'more.ts'), 'export {};\n');
  assert.equal((await version(folder)).code, 0);
  assert.ok(!existsSync(join(programs, left)));
});

test('without its compiler the program runs if it is compiled, and otherwise one sentence says what to do', async () => {
  const folder = copyOf('production', ['esbuild', 'typescript', 'tsx']);
  const refused = await version(folder);
  assert.deepEqual([refused.code, refused.stdout], [UNUSABLE, '']);
  assert.match(
    refused.stderr,
    /^mesh-na: The program is not compiled, and esbuild, [^\n]+: run npm ci without --omit=dev, then npm run build\n$/,
  );
  cpSync(join(compiled, 'dist'), join(folder, 'dist'), { recursive: true });
  const { code, stderr } = await version(folder);
  assert.deepEqual([code, stderr], [0, '']);
});

test('a folder that cannot contain the program is named', async () => {
  const folder = copyOf('unwritable');
  writeFileSync(join(folder, 'dist'), 'a file');
  const { code, stderr } = await version(folder);
  assert.equal(code, UNUSABLE);
  const [compiling, sentence, ...rest] = stderr.split('\n');
  assert.equal(`${compiling}\n`, COMPILING);
  assert.match(
    String(sentence),
    /^mesh-na: The program cannot be written to .*dist\/program \(\w+\): run /,
  );
  assert.deepEqual(rest, ['']);
});

test('sources that do not compile end the start with the reason', async () => {
  const folder = copyOf('broken');
  writeFileSync(join(folder, 'src', 'cli', 'main.ts'), 'const = 1;\n');
  const { code, stderr } = await version(folder);
  assert.equal(code, UNUSABLE);
  assert.match(stderr, /src\/cli\/main\.ts:1:6/);
  assert.match(stderr, /\nmesh-na: The sources cannot be compiled, for the reasons above\n$/);
});

for (const part of ['uWebSockets.js', 'lmdb', 'sodium-native', 'fs-native-extensions']) {
  test(`if ${part} does not load, a start ends with one sentence and creates no network`, async () => {
    const folder = copyOf(`without-${part}`, [part]);
    cpSync(join(compiled, 'dist'), join(folder, 'dist'), { recursive: true });
    const start = ['src/build/start.js', 'serve', '--create', '--port', '0'];
    const ended = await endOf(spawnNode(start, { cwd: folder, stdio: 'pipe' }));
    assert.deepEqual([ended.code, ended.stdout], [UNUSABLE, '']);
    assert.match(ended.stderr, new RegExp(`^mesh-na: ${part} does not load with Node[^\\n]+\\n$`));
    assert.ok(!existsSync(join(folder, 'mesh-data')));
  });
}

test('the sentence about a part that does not load names what was found, what runs, and what to do', () => {
  const said = (nodeVersion: string, glibcVersion: string | null) =>
    notLoaded('lmdb', { nodeVersion, glibcVersion });
  const runs =
    'Supported: Node.js 20.15 or later with glibc 2.27 or later, and Node.js 22 to 25 with glibc 2.38 or later. Use one of these, such as Node.js 20';
  for (const [nodeVersion, glibcVersion, library] of [
    ['24.1.0', '2.36', 'glibc 2.36'],
    ['26.0.0', '2.40', 'glibc 2.40'],
    ['20.9.0', '2.36', 'glibc 2.36'],
    ['22.1.0', null, 'a C library other than glibc'],
  ] as const) {
    const found = `lmdb does not load with Node.js ${nodeVersion} and ${library}`;
    assert.equal(said(nodeVersion, glibcVersion), `${found}. ${runs}`);
  }
  assert.equal(
    said('24.1.0', '2.38'),
    'lmdb does not load with Node.js 24.1.0 and glibc 2.38, although a build for them exists: reinstall the packages, with npm ci in a checkout',
  );
});

for (const [which, folder, receiver] of [
  ['a first', uncompiled, 'npm'],
  ['a second', compiled, 'the process that npm starts'],
] as const) {
  test(`${which} npm start serves as one process until ${receiver} gets SIGTERM`, {
    skip: !existsSync('/proc/self/task'),
  }, async (t) => {
    const dataDir = join(scratch, receiver.replaceAll(' ', '-'));
    const port = String(await freePort('127.0.0.1', 0));
    const npm = spawn('npm', ['start', '-s', '--', '--data-dir', dataDir, '--port', port], {
      cwd: folder,
      env: { ...process.env, MESH_DRAIN_SECONDS: '0', MESH_THREADS: '2' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = endOf(npm);
    await untilSaid(npm, ' is served on ');
    const started = descendantsOf(Number(npm.pid));
    t.after(() => {
      for (const pid of started.filter(isRunning)) process.kill(pid, 'SIGKILL');
    });
    const [server] = started.slice(-1);
    assert.ok(server !== undefined);
    assert.equal(started.length, 1, 'npm starts the server itself, and no compiler runs');
    process.kill(receiver === 'npm' ? Number(npm.pid) : server, 'SIGTERM');
    const { stdout } = await ended;
    assert.match(stdout, /SIGTERM: finishing requests in flight\n.* Stopped\n$/);
    assert.ok(!started.some(isRunning));
  });
}

async function untilSaid({ stdout }: ChildProcess, text: string): Promise<void> {
  let said = '';
  await new Promise<void>((resolve) => {
    stdout?.on('data', (chunk: string) => {
      said += chunk;
      if (said.includes(text)) resolve();
    });
  });
}

function descendantsOf(pid: number): number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

// A start that fails after requests are served ends the whole process, and says why.

const cluster = await sharedCluster();

for (const [what, threads, hasDatabase] of [
  ['in its data folder, with one thread', '1', false],
  ['in its data folder, with two', '2', false],
  ['in PostgreSQL, with one thread', '1', true],
  ['in PostgreSQL, with two', '2', true],
] as const) {
  test(`a start that fails late ends with 3 and its cause, with the state ${what}, and the next one serves`, async () => {
    const folder = ownNetwork();
    const place = hasDatabase ? ['--store', await cluster.createStore()] : [];
    const args = ['--threads', threads, ...place];
    await assert.rejects(
      startChildServer(folder, { args, program: LATE_START_THROWS }),
      /ended with 3: [\s\S]*"code":"start_refused","message":"injected into the start"/,
    );
    await using server = await startChildServer(folder, { args, environment: NO_LIMITS });
    const { code } = await server.end('SIGTERM');
    assert.equal(code, 0);
  });
}
