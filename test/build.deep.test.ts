/** The npm package of the release, installed into an empty folder: compiled, with a command and a client. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { packageVersion } from '../src/cli/version.ts';
import { startChildServer } from './support/child-server.ts';
import { ownFolder } from './support/folders.ts';
import { PROJECT_PATH } from './support/project.ts';
import { releaseFolder } from './support/released.ts';
import { get, heartbeat, joinedNode, operate } from './support/requests.ts';

const folder = ownFolder();
const tarball = join(releaseFolder(), `mesh-network-authority-${packageVersion()}.tgz`);
const install = ['install', '--silent', '--offline', '--prefix', folder, tarball];
execFileSync('npm', install, { cwd: folder });

const packed = join(folder, 'node_modules', 'mesh-network-authority');
const program = join(packed, 'dist', 'src', 'main.js');
const network = join(folder, 'network');

function run(command: string, args: readonly string[]): string {
  return execFileSync(command, args, { cwd: folder, encoding: 'utf8' });
}

test('the installed command runs from any folder', () => {
  const command = join(folder, 'node_modules', '.bin', 'mesh-na');
  assert.equal(run(command, ['--version']).trim(), packageVersion());
  run(command, ['init', '--data-dir', network, '--network-name', 'alpha']);
  assert.ok(existsSync(join(network, 'genesis.json')));
});

test('the package contains compiled code and nothing that has to be compiled', () => {
  const files = readdirSync(packed, { recursive: true, encoding: 'utf8' });
  const own = files.filter((name) => !name.startsWith('node_modules'));
  const sources = own.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'));
  assert.deepEqual(sources, []);
  assert.ok(files.includes('LICENSE') && files.includes('README.md'));
});

test('the installed package has one program, with a worker for every kind of thread', () => {
  const programs = readdirSync(join(packed, 'dist', 'program'));
  assert.equal(programs.length, 1);
  const names = readdirSync(join(packed, 'dist', 'program', String(programs[0])));
  for (const name of ['main', 'edge-worker', 'list-worker', 'watchdog-worker']) {
    assert.ok(names.includes(`${name}.js`), name);
  }
});

const INSTALLED = [program];
const SOURCES = ['--import', import.meta.resolve('tsx'), join(PROJECT_PATH, 'src/cli/main.ts')];

for (const [what, served, threads] of [
  ['the installed package', INSTALLED, '1'],
  ['the installed package', INSTALLED, '3'],
  ['a checkout that is not compiled', SOURCES, '2'],
] as const) {
  test(`${what} does the main job on ${threads} thread(s)`, async () => {
    const args = ['--threads', threads];
    const server = await startChildServer(network, { program: served, args });
    await using na = server.na;
    const node = await joinedNode(na);
    assert.equal((await heartbeat(na, node)).status, 200);
    assert.equal((await operate(na, '/admin/revoke', { cert_id: node.certId })).status, 200);
    assert.equal((await heartbeat(na, node)).body.error.code, 'certificate_revoked');
    assert.deepEqual((await get(na, '/nodes')).body, { count: 0 });
    assert.equal((await server.end('SIGTERM')).code, 0);
  });
}

test('everything that the package exports can be imported and has types', () => {
  const source = join(folder, 'consumer.mts');
  const text = `
    import { keyFromSeed, signText, verifyText } from 'mesh-network-authority/client/keys';
    import { canonicalJson } from 'mesh-network-authority/json/write';
    import { readGenesisBlock } from 'mesh-network-authority/records/genesis';
    const key = keyFromSeed(new Uint8Array(32));
    const text: string = canonicalJson({ b: 1, a: [true] });
    const isSigned: boolean = verifyText(key.publicKey, text, await signText(key, text));
    const genesis: { network_name: string } | null = readGenesisBlock({});
    console.log(text, isSigned, genesis);
  `;
  writeFileSync(source, text);
  const options = ['--module', 'nodenext', '--target', 'es2023', '--strict', '--types', ''];
  run(join(PROJECT_PATH, 'node_modules', '.bin', 'tsc'), [...options, source]);
  const printed = run(process.execPath, [join(folder, 'consumer.mjs')]);
  assert.equal(printed.trim(), '{"a":[true],"b":1} true null');
});

test('npm run prune-binaries leaves the one binary of uWebSockets.js that is loaded', () => {
  const place = ownFolder();
  const library = join(place, 'node_modules', 'uWebSockets.js');
  const original = dirname(createRequire(import.meta.url).resolve('uWebSockets.js'));
  const own = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  mkdirSync(join(place, 'src', 'build'), { recursive: true });
  for (const file of ['package.json', 'src/build/prune-binaries.js']) {
    cpSync(join(PROJECT_PATH, file), join(place, file));
  }
  mkdirSync(library, { recursive: true });
  for (const name of ['package.json', 'uws.js']) cpSync(join(original, name), join(library, name));
  const prune = () =>
    execFileSync('npm', ['run', '-s', 'prune-binaries'], {
      cwd: place,
      encoding: 'utf8',
      stdio: 'pipe',
    });

  writeFileSync(join(library, 'uws_plan9_x64_1.node'), 'of another platform');
  assert.throws(prune, /Nothing was removed/);
  cpSync(join(original, own), join(library, own));
  assert.match(prune(), new RegExp(`^Kept ${own} and removed 1 other binaries`));
  assert.deepEqual(readdirSync(library).sort(), ['package.json', 'uws.js', own].sort());
  const loaded = createRequire(join(place, 'package.json'))('uWebSockets.js');
  assert.equal(typeof loaded.App, 'function');
});
