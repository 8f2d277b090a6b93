/** The first step of `npm test`, on machines that have what it needs, can get it, or cannot. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { LOADER, modulePath, PROJECT_PATH } from './support/project.ts';

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
