/** What `npm run release` creates: each part is installed in a clean Debian 13 and performs its main task there. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { packageVersion } from '../src/cli/version.ts';
import { debianRoot, imageNode } from '../tools/release/fetched.ts';
import { type CleanRoot, unpackRoot } from './support/debian-root.ts';
import { ownPort } from './support/own-port.ts';
import { childrenOf } from './support/processes.ts';
import { PROJECT_PATH } from './support/project.ts';
import { makeRelease, releaseFolder } from './support/released.ts';
import { signerDropIn, startSystemd } from './support/systemd.ts';

const run = promisify(execFile);
const version = packageVersion();
const { MESH_TEST_RELEASE_TWICE: twice } = process.env;
const release = releaseFolder();
const machine = debianRoot(PROJECT_PATH, 'machine');
const node24 = imageNode(PROJECT_PATH);
const NODE = ['/usr/bin/node', '--no-allocation-site-pretenuring'];
/** Where the Debian package keeps its state. */
const STATE = '/var/lib/mesh-na';

/** A command that the manual gives for the Debian package, without `sudo`. */
function documented(form: RegExp): string {
  const manual = readFileSync(join(PROJECT_PATH, 'docs/install.md'), 'utf8');
  const [, command] = form.exec(manual) ?? [];
  assert.ok(command !== undefined);
  return command;
}

/** Servers of other tests would share the port if they took it while this service restarts. */
const apartPort = async () => (await ownPort()) - 10_000;

type MeshNa = (...args: readonly string[]) => Promise<string>;

/** Invites a node, which joins and sends a heartbeat; `folder` contains it and its token. */
async function mainJob(meshNa: MeshNa, dataDir: string, folder: string): Promise<void> {
  const [token, node] = [join(folder, 'token'), join(folder, 'node')];
  await meshNa('invite', 'create', '--data-dir', dataDir, '--role', 'role:client', '--out', token);
  const genesis = ['--genesis', join(dataDir, 'genesis.json')];
  await meshNa('node', 'join', ...genesis, '--token-file', token, '--node-dir', node);
  assert.match(await meshNa('node', 'heartbeat', '--node-dir', node), /acknowledged/);
  const nodes = await meshNa('node', 'list', '--data-dir', dataDir, '--json');
  assert.equal(JSON.parse(nodes).count, 1);
}

/** About a minute of tries, on an idle machine. */
const MOST_TRIES = 1200;

async function ready(port: number): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
    if (answer?.ok === true) return;
    await delay(50);
  }
  assert.fail('It is not ready after a minute');
}

async function nameAt(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/genesis`);
  return JSON.parse(await answer.text()).network_name;
}

/** Serves in a root, performs the main task, and stops the service as a container runtime would. */
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

test('the checksums match the files, and linters find nothing in the package', async () => {
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

test('the same commit produces the same bytes', {
  skip: twice ? false : 'see npm run test:longer -- release',
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

  test('apt installs the Debian package, its units serve, and removing it never removes the keys', async (t) => {
    using root = unpackRoot([machine]);
    const name = `mesh-na_${version}_amd64.deb`;
    cpSync(join(release, name), join(root.path, 'opt', name));
    const apt = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '--yes'];
    const installed = await root.run(
      [...apt, 'install', '--no-install-recommends', `/opt/${name}`],
      { environment: { MESH_NETWORK_NAME: 'alpha' } },
    );
    assert.match(installed, /^Network "alpha" created\.$/m);
    const port = await apartPort();
    const settings = `PORT=${port}\nMESH_DRAIN_SECONDS=0\n`;
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
    const { systemctl } = systemd;
    const address = `MESH_URL=http://127.0.0.1:${port}`;
    const meshNa: MeshNa = (...args) => systemd.run('env', address, 'mesh-na', ...args);
    const sh = (script: string) => systemd.run('sh', '-ec', script);
    const refusedStart = async () => {
      writeFileSync(systemd.path('/run/output'), '');
      await assert.rejects(systemctl('start', 'mesh-na'));
      // Otherwise, systemd would try again and again.
      await systemctl('stop', 'mesh-na');
      return readFileSync(systemd.path('/run/output'), 'utf8');
    };

    await t.test(
      'the network created at installation is served, under another name if it is created again',
      async () => {
        await systemctl('start', 'mesh-na');
        assert.equal(await nameAt(port), 'alpha');
        await systemctl('stop', 'mesh-na');
        await sh(`find ${STATE} ${STATE}-head -mindepth 1 -delete`);
        assert.match(await refusedStart(), /for a new network run mesh-na init --data-dir \S+;/);
        await sh(documented(/`sudo (mesh-na init [^`]*)`/));
        await systemctl('start', 'mesh-na');
        assert.equal(await nameAt(port), 'beta');
        await mainJob(meshNa, STATE, '/srv');
        const state = await systemd.run('stat', '--format=%U %a', `${STATE}/keys/na.key`);
        assert.match(state, /^mesh-na [46]00$/);
        assert.ok(existsSync(join(root.path, 'usr/share/man/man1/mesh-na.1.gz')));
      },
    );

    await t.test('an upgrade restarts it, and keeps settings and state', async () => {
      const mainPid = () => systemctl('show', 'mesh-na', '--property=MainPID', '--value');
      const before = await mainPid();
      await systemd.run('dpkg', '--install', `/opt/${name}`);
      await ready(port);
      assert.notEqual(await mainPid(), before);
      const kept = readFileSync(join(root.path, 'etc/mesh-na/environment'), 'utf8');
      assert.ok(kept.endsWith(settings));
      assert.match(await meshNa('node', 'heartbeat', '--node-dir', '/srv/node'), /acknowledged/);
    });

    await t.test(
      'a lost state is an error, and a backup that root restores is served',
      async () => {
        await meshNa('backup', 'create', '--data-dir', STATE, '--to', '/srv/backup');
        await sh(`systemctl stop mesh-na
        mkdir /srv/lost
        mv ${STATE}/keys ${STATE}/genesis.json ${STATE}/mesh-na.json /srv/lost
        rm -r ${STATE} ${STATE}-head`);
        assert.match(
          await refusedStart(),
          /if there was one, mount its volume, or restore its keys/,
        );
        assert.deepEqual(readdirSync(systemd.path(STATE)), []);
        await sh(`cp -r /srv/lost/* ${STATE}`);
        const from = ['--backup', '/srv/backup', '--data-dir', STATE];
        const plan = await meshNa('restore', 'plan', ...from.slice(0, 2));
        const [, loss = ''] = /--accept-loss (\S+)/.exec(plan) ?? [];
        await meshNa('restore', 'apply', ...from, '--accept-loss', loss);
        assert.match(await refusedStart(), /start once with --new-head/);
        const once = sh(`echo $$ > /run/once
        exec ${documented(/`sudo (mesh-na serve [^`]*)`/)} --port ${port}`);
        await Promise.race([once, ready(port)]);
        await sh('kill -INT $(cat /run/once)');
        await once;
        await systemctl('start', 'mesh-na');
        await ready(port);
      },
    );

    await t.test(
      'the signer of the package signs, and the service never sees the key',
      async () => {
        await sh(`install -d -m 700 /etc/mesh-na-signer
        mv ${STATE}/keys/na.key /etc/mesh-na-signer/na.key
        mkdir /mnt/mesh-na.service.d`);
        const dropIn = signerDropIn(units['mesh-na-signer.service'] ?? '');
        writeFileSync(systemd.path('/mnt/mesh-na.service.d/signer.conf'), dropIn);
        await systemctl('daemon-reload');
        await systemctl('restart', 'mesh-na');
        await systemctl('is-active', 'mesh-na-signer');
        const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
        assert.equal(JSON.parse(await answer.text()).enrollment, 'open');
      },
    );

    await t.test('a purge stops everything, and leaves the keys', async () => {
      await systemd.run(...apt, 'purge', 'mesh-na');
      for (const unit of ['mesh-na', 'mesh-na-signer']) {
        await assert.rejects(systemctl('is-active', unit), `${unit} has stopped`);
      }
      assert.ok(!existsSync(join(root.path, 'usr/lib/mesh-na')));
      assert.ok(!existsSync(join(root.path, 'etc/mesh-na/environment')));
      assert.ok(existsSync(join(root.path, STATE, 'keys/root.key')));
      assert.ok(existsSync(join(root.path, 'etc/mesh-na-signer/na.key')));
    });
  });
});

test('the image contains what it should, and serves without a shell and as an unprivileged user', async () => {
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
  await meshNa('init', '--network-name', 'alpha');
  const serve = [...config.Entrypoint, ...config.Cmd];
  await serveIn(root, serve, meshNa, { ...given, port, dataDir: '/data', folder: '/data' });
});
