/** What `npm run release` makes: each part is installed in a clean Debian 13, and does the main job there. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { debianRoot, imageNode } from '../release/fetched.ts';
import { packageVersion } from '../src/cli/version.ts';
import { type CleanRoot, unpackRoot } from './support/debian-root.ts';
import { ownPort } from './support/own-port.ts';
import { childrenOf } from './support/processes.ts';
import { PROJECT_PATH } from './support/project.ts';
import { makeRelease } from './support/released.ts';
import { startSystemd } from './support/systemd.ts';

const run = promisify(execFile);
const version = packageVersion();
const { MESH_TEST_RELEASE: made, MESH_TEST_RELEASE_TWICE: twice } = process.env;
const release = made ?? makeRelease();
const machine = debianRoot(PROJECT_PATH, 'machine');
const node24 = imageNode(PROJECT_PATH);
const NODE = ['/usr/bin/node', '--no-allocation-site-pretenuring'];

/** Servers of other tests would share the port, if they took it while this service restarts. */
const apartPort = async () => (await ownPort()) - 10_000;

type MeshNa = (...args: readonly string[]) => Promise<string>;

/** A node is invited, joins and sends a heartbeat; `folder` is where it and its token are kept. */
async function mainJob(meshNa: MeshNa, dataDir: string, folder: string): Promise<void> {
  const [token, node] = [join(folder, 'token'), join(folder, 'node')];
  await meshNa('invite', 'create', '--data-dir', dataDir, '--role', 'role:client', '--out', token);
  const genesis = ['--genesis', join(dataDir, 'genesis.json')];
  await meshNa('node', 'join', ...genesis, '--token-file', token, '--node-dir', node);
  assert.match(await meshNa('node', 'heartbeat', '--node-dir', node), /acknowledged/);
  const nodes = await meshNa('node', 'list', '--data-dir', dataDir, '--json');
  assert.equal(JSON.parse(nodes).count, 1);
}

async function ready(port: number): Promise<void> {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
    if (answer?.ok === true) return;
    await delay(50);
  }
}

/** Serves in a root, runs the main job and stops the service as a container's runtime would. */
async function serveIn(root: CleanRoot, serve: readonly string[], meshNa: MeshNa, options: object) {
  const { port, dataDir, folder, ...given } = options as Served;
  const server = root.start(serve, given);
  server.stdout?.resume();
  try {
    await ready(port);
    await mainJob(meshNa, dataDir, folder);
    process.kill(childrenOf(server.pid ?? 0)[0] ?? 0, 'SIGTERM');
    assert.equal((await ended(server)).code, 0);
  } finally {
    server.kill('SIGKILL');
  }
}

interface Served {
  readonly port: number;
  readonly dataDir: string;
  readonly folder: string;
}

async function ended(child: ChildProcess) {
  const [code] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode];
  return { code };
}

test('the sums are those of the files, and nothing in the package offends a linter', async () => {
  await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: release });
  const packed = join(release, `mesh-network-authority-${version}.tgz`);
  const publint = join(PROJECT_PATH, 'node_modules/.bin/publint');
  await run(publint, ['run', packed, '--strict']).catch(({ stdout }) => assert.fail(stdout));
  assert.match(readFileSync(join(release, 'NOTES.txt'), 'utf8'), new RegExp(`^# ${version}\n`));
  const { components } = JSON.parse(readFileSync(join(release, 'sbom.cdx.json'), 'utf8'));
  const names = components.map(({ name }: { name: string }) => name);
  assert.ok(names.includes('lmdb') && names.includes('commander'));
  assert.ok(!names.includes('@lmdb/lmdb-win32-x64') && !names.includes('typescript'));
});

test('the same commit gives the same bytes', {
  skip: twice ? false : 'see npm run test:release',
}, () => {
  const sums = (folder: string) => readFileSync(join(folder, 'SHA256SUMS'), 'utf8');
  assert.equal(sums(makeRelease()), sums(release));
});

suite('in a clean Debian 13', () => {
  test('npm installs the package without a registry, and its command runs', async () => {
    using root = unpackRoot([machine]);
    cpSync(join(node24, 'bin/node'), join(root.path, 'usr/bin/node'));
    const npm = execFileSync('npm', ['root', '--global'], { encoding: 'utf8' }).trim();
    cpSync(realpathSync(join(npm, 'npm')), join(root.path, 'opt/npm'), { recursive: true });
    const name = `mesh-network-authority-${version}.tgz`;
    cpSync(join(release, name), join(root.path, 'opt', name));
    const install = ['install', '--global', '--offline', '--no-audit', '--no-fund', `/opt/${name}`];
    await root.run(['/usr/bin/node', '/opt/npm/bin/npm-cli.js', ...install]);
    const port = await apartPort();
    const environment = { MESH_URL: `http://127.0.0.1:${port}`, PORT: String(port) };
    const meshNa: MeshNa = (...args) => root.run(['mesh-na', ...args], { environment });
    assert.equal((await meshNa('--version')).trim(), version);
    const serve = ['mesh-na', 'serve', '--create', '--data-dir', '/srv/network'];
    const given = { environment, port, dataDir: '/srv/network', folder: '/srv' };
    await serveIn(root, serve, meshNa, given);
  });

  test('apt installs the Debian package, its unit serves, and no removal takes the keys', async () => {
    using root = unpackRoot([machine]);
    const name = `mesh-na_${version}_amd64.deb`;
    cpSync(join(release, name), join(root.path, 'opt', name));
    const apt = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '--yes'];
    await root.run([...apt, 'install', '--no-install-recommends', `/opt/${name}`]);
    const port = await apartPort();
    const settings = `NETWORK_NAME=alpha\nPORT=${port}\nMESH_DRAIN_SECONDS=0\n`;
    appendFileSync(join(root.path, 'etc/mesh-na/environment'), settings);
    const units = Object.fromEntries(
      ['mesh-na.service', 'mesh-na-signer.service'].map((unit) => [
        unit,
        readFileSync(join(root.path, 'usr/lib/systemd/system', unit), 'utf8'),
      ]),
    );
    await using systemd = await startSystemd({
      root: root.path,
      units,
      binds: [],
      prepare: '',
    });
    await systemd.systemctl('start', 'mesh-na');
    const address = `MESH_URL=http://127.0.0.1:${port}`;
    const meshNa: MeshNa = (...args) => systemd.run('env', address, 'mesh-na', ...args);
    await mainJob(meshNa, '/var/lib/mesh-na', '/srv');
    const state = await systemd.run('stat', '--format=%U %a', '/var/lib/mesh-na/keys/na.key');
    assert.match(state, /^mesh-na [46]00$/);
    const manual = 'usr/share/man/man1/mesh-na.1.gz';
    assert.ok(existsSync(join(root.path, manual)));

    const mainPid = () => systemd.systemctl('show', 'mesh-na', '--property=MainPID', '--value');
    const before = await mainPid();
    await systemd.run('dpkg', '--install', `/opt/${name}`);
    await ready(port);
    assert.notEqual(await mainPid(), before, 'an upgrade restarts the service');
    assert.match(readFileSync(join(root.path, 'etc/mesh-na/environment'), 'utf8'), /=alpha$/m);
    assert.match(await meshNa('node', 'heartbeat', '--node-dir', '/srv/node'), /acknowledged/);

    await systemd.run(...apt, 'purge', 'mesh-na');
    const left = () => systemd.systemctl('is-active', 'mesh-na');
    await assert.rejects(left, 'the service has stopped');
    assert.ok(!existsSync(join(root.path, 'usr/lib/mesh-na')));
    assert.ok(!existsSync(join(root.path, 'etc/mesh-na/environment')));
    assert.ok(existsSync(join(root.path, 'var/lib/mesh-na/keys/root.key')));
  });
});

test('the image has what it says, and serves without a shell and as no one in particular', async () => {
  const layout = mkdtempSync(join(tmpdir(), 'mesh-na-layout-'));
  execFileSync('tar', ['-xf', join(release, `mesh-na-${version}-image.tar`), '-C', layout]);
  const blob = (digest: string) => join(layout, 'blobs', digest.replace(':', '/'));
  const json = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
  const { manifests } = json(join(layout, 'index.json'));
  const manifest = json(blob(manifests[0].digest));
  const layers: { digest: string }[] = manifest.layers;
  for (const { digest } of [...manifests, manifest.config, ...layers]) {
    const { stdout } = await run('sha256sum', [blob(digest)]);
    assert.equal(`sha256:${stdout.slice(0, 64)}`, digest);
  }
  const { config, rootfs } = json(blob(manifest.config.digest));
  assert.equal(rootfs.diff_ids.length, layers.length);

  using root = unpackRoot(layers.map(({ digest }) => blob(digest)));
  assert.ok(!existsSync(join(root.path, 'usr/bin/sh')));
  const port = await apartPort();
  const own = Object.fromEntries(config.Env.map((line: string) => line.split('=')));
  const environment = {
    ...own,
    PORT: String(port),
    MESH_URL: `http://127.0.0.1:${port}`,
    HOME: '/data',
  };
  const given = { environment, as: config.User };
  const meshNa: MeshNa = (...args) => root.run([...NODE, '/usr/bin/mesh-na', ...args], given);
  assert.equal((await root.run(['/usr/bin/mesh-na', '--version'], given)).trim(), version);
  const serve = [...config.Entrypoint, ...config.Cmd];
  await serveIn(root, serve, meshNa, { ...given, port, dataDir: '/data', folder: '/data' });
});
