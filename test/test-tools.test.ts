/** What tests rely on: folders and processes end with them, programs are installed, and failures name their place. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { transform } from 'esbuild';
import { networkFolder } from './support/folders.ts';
import { childrenOf, isRunning, spawnNode } from './support/processes.ts';
import { LOADER, modulePath, PROJECT_PATH } from './support/project.ts';
import { scratchFolder } from './support/scratch.ts';
import { sourcePlace, withSourcePlaces } from './support/source-places.ts';

const below = mkdtempSync(join(tmpdir(), 'mesh-na-below-'));
after(() => rmSync(below, { recursive: true, force: true }));
const PREFIX = 'mesh-na-scratch-';

/** A process that has such a folder and prints its path. */
async function startHolder() {
  const module = pathToFileURL(modulePath('test/support/scratch.ts')).href;
  const script = `
    import { writeFileSync } from 'node:fs';
    import { scratchFolder } from ${JSON.stringify(module)};
    const { path } = scratchFolder(${JSON.stringify(PREFIX)}, { below: ${JSON.stringify(below)} });
    writeFileSync(path + '/content', 'something');
    process.on('SIGTERM', () => process.exit(1));
    setInterval(() => undefined, 1000);
    process.stdout.write(path);`;
  const args = [...LOADER, '--input-type=module', '--eval', script];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [path] = await once(child.stdout, 'data');
  return {
    path: String(path),
    async end(signal: NodeJS.Signals) {
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    },
  };
}

test('a folder is removed with its process, and after a kill by the next one; folders in use stay', async () => {
  const [stopped, killed, living] = [await startHolder(), await startHolder(), await startHolder()];
  const foreign = join(below, `${PREFIX}foreign`);
  mkdirSync(foreign);
  writeFileSync(join(foreign, 'content'), 'of somebody else');
  await stopped.end('SIGTERM');
  assert.equal(existsSync(stopped.path), false);
  await killed.end('SIGKILL');
  assert.equal(existsSync(killed.path), true);

  const own = scratchFolder(PREFIX, { below });
  assert.equal(existsSync(killed.path), false);
  for (const path of [living.path, own.path, foreign]) assert.equal(existsSync(path), true, path);
  own.remove();
  assert.equal(existsSync(own.path), false);
  await living.end('SIGTERM');
});

// Processes that tests start end with them, even if the runner kills a file that hangs.

const urlOf = (path: string) => pathToFileURL(path).href;

/** A test file that starts a server and a browser, and then hangs. */
const HANGING = `
  import { startBrowser } from '${urlOf(modulePath('test/support/browser.ts'))}';
  import { startChildServer } from '${urlOf(modulePath('test/support/child-server.ts'))}';
  await startChildServer(process.argv[1]);
  await startBrowser();
  process.stderr.write('hanging');
  setImmediate(() => { for (;;); });`;

const canSee = existsSync('/proc/self/task');

test('servers and browsers of a test process end when it is killed', {
  skip: !canSee,
}, async () => {
  await using folder = networkFolder('alpha');
  const args = [...LOADER, '--input-type=module', '--eval', HANGING, folder.path];
  const hanging = spawnNode(args, { stdio: ['ignore', 'ignore', 'pipe'] });
  assert.ok(hanging.stderr !== null && hanging.pid !== undefined);
  const [said] = await once(hanging.stderr, 'data');
  assert.equal(String(said), 'hanging');
  const started = childrenOf(hanging.pid);
  assert.ok(started.length >= 2, 'a server and a browser');
  const ended = once(hanging, 'exit');
  hanging.kill('SIGTERM');
  assert.deepEqual(await ended, [null, 'SIGTERM']);
  // If this never happens, the runner's time limit ends it.
  while (started.some(isRunning)) await delay(20);
});

// The first step of `npm test`, on machines that have what it needs, can get it, or cannot.

const PREPARE = [...LOADER, modulePath('test/prepare.ts')];
const COMMAND = 'sudo apt-get install --no-install-recommends chromium-headless-shell';

const OTHERS = Object.fromEntries(
  [
    ...['nginx', 'haproxy', 'curl', 'jq', 'openssl', 'git', 'strace', 'mmdebstrap'],
    ...['promtool', 'systemd-analyze', 'ssh-agent'],
  ].map((name) => [name, '']),
);

/** A folder that is the entire PATH of a machine, with scripts as its programs. */
function machineWith(t: TestContext, scripts: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-na-path-'));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  return folder;
}

function prepare(path: string, environment: Readonly<Record<string, string>> = {}) {
  const { CHROMIUM_PATH: _, ...inherited } = process.env;
  const env = { ...inherited, ...environment, PATH: path };
  const options = { cwd: PROJECT_PATH, env, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, PREPARE, options);
  return { status, stdout, stderr };
}

test('nothing is done if everything is installed, or the path of Chromium is given', (t) => {
  const path = machineWith(t, { ...OTHERS, chromium: '' });
  const nothing = { status: 0, stdout: '', stderr: '' };
  assert.deepEqual(prepare(path), nothing);
  const elsewhere = { CHROMIUM_PATH: join(path, 'chromium') };
  assert.deepEqual(prepare(machineWith(t, OTHERS), elsewhere), nothing);
});

test('without Chromium, and without a way to install it, the command to run is named', (t) => {
  const { status, stderr } = prepare(machineWith(t, OTHERS));
  assert.equal(status, 1);
  assert.ok(stderr.includes(COMMAND), stderr);
});

test('a sudo that asks for a password cannot install it', (t) => {
  const { status, stderr } = prepare(
    machineWith(t, { ...OTHERS, sudo: 'exit 1', 'apt-get': 'exit 1' }),
  );
  assert.equal(status, 1);
  assert.ok(stderr.includes(COMMAND), stderr);
});

const SUDO = '[ "$1" = --non-interactive ] && shift && exec "$@"';

test('Chromium is installed if root, or sudo without a password, can do it', (t) => {
  const install = `case "$*" in "install --yes --no-install-recommends chromium-headless-shell")
    echo '#!/bin/sh' > "$PATH/chromium-headless-shell"; /bin/chmod +x "$PATH/chromium-headless-shell";; esac`;
  const { status, stdout } = prepare(machineWith(t, { ...OTHERS, sudo: SUDO, 'apt-get': install }));
  assert.equal(status, 0);
  assert.match(stdout, /installing from the distribution/);
});

test('an installation without Chromium in the end fails, and names the command', (t) => {
  const { status, stderr } = prepare(machineWith(t, { ...OTHERS, sudo: SUDO, 'apt-get': '' }));
  assert.equal(status, 1);
  assert.ok(stderr.includes(COMMAND), stderr);
});

test('everything missing is named in one command', (t) => {
  const { status, stderr } = prepare(machineWith(t, { nginx: '', haproxy: '', curl: '' }));
  const others = 'prometheus systemd jq openssl git strace mmdebstrap openssh-client';
  assert.equal(status, 1);
  assert.ok(stderr.includes(`${COMMAND} ${others}\n`), stderr);
});

const SOURCE = `interface Removed {
  readonly name: string;
}

export function fail(): never {
  throw new Error('failed');
}
`;

/** A compiled module, and the line and column in it where it throws. */
async function compiled() {
  const folder = join(scratchFolder('mesh-na-places-').path, 'build');
  mkdirSync(folder);
  const { code, map } = await transform(SOURCE, {
    loader: 'ts',
    sourcemap: true,
    sourcefile: 'failing.ts',
  });
  const path = join(folder, 'failing.js');
  writeFileSync(path, code);
  writeFileSync(`${path}.map`, map);
  const line = code.split('\n').findIndex((text) => text.includes('new Error')) + 1;
  return { folder, path, line, column: code.split('\n')[line - 1]?.indexOf('new Error') ?? 0 };
}

async function shown(text: string): Promise<string> {
  async function* output() {
    yield text;
  }
  let all = '';
  for await (const part of withSourcePlaces(output())) all += part;
  return all;
}

test('the runner shows where the source of a compiled test is', async () => {
  const { folder, path, line, column } = await compiled();
  const source = join(folder, 'failing.ts');
  assert.deepEqual(sourcePlace(path, line, column + 1), { file: source, line: 6, column: 9 });
  for (const place of [path, pathToFileURL(path).href]) {
    const text = await shown(`Error: failed\n    at fail (${place}:${line}:${column + 1})\n`);
    assert.equal(text, `Error: failed\n    at fail (${source}:6:9)\n`);
  }
});

test('it leaves other places, and those without a map, as they are', async () => {
  const text = 'at node:internal/process:95:5, /nowhere/build/lost.js:3:4 and build/lost.js:3:4\n';
  assert.equal(await shown(text), text);
});
