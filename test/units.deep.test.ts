/** The units of docs/deploy, unchanged, under a real systemd: started, reloaded, killed and stopped. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, copyFileSync, readFileSync, realpathSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { httpFetch } from '../src/cli/connection/server.ts';
import { makeCheckout } from './support/checkout.ts';
import { ownFolder } from './support/folders.ts';
import { ownPort } from './support/own-port.ts';
import { PROJECT, PROJECT_PATH } from './support/project.ts';
import { lacksSystemd, type Systemd, signerDropIn, startSystemd } from './support/systemd.ts';
import { makeTlsPair } from './support/tls-files.ts';

const lacking = await lacksSystemd();
const scratch = ownFolder();

const deployed = (name: string) =>
  readFileSync(new URL(`docs/deploy/${name}`, PROJECT), 'utf8').replace('/usr/bin/node', NODE);
/** Where services find this machine's Node.js. */
const NODE = '/opt/node';
const STATE = '/var/lib/private/mesh-na';

/** The manual's command that creates the network, run as root. */
function documentedInit(): string {
  const manual = readFileSync(new URL('docs/install.md', PROJECT), 'utf8');
  const [, command] = /^sudo \/usr\/bin\/node (.* init .*)$/m.exec(manual) ?? [];
  assert.ok(command !== undefined);
  return `${NODE} ${command}`;
}

/** Installs the program, and creates a network with TLS whose authority key only the signer has. */
async function start(port: number): Promise<Systemd> {
  const checkout = join(scratch, 'checkout');
  makeCheckout(checkout);
  execFileSync(process.execPath, [join(checkout, 'src', 'build', 'start.js'), '--version']);
  const pairs = ['first', 'second'].map((name) => makeTlsPair(scratch, name));
  const [first] = pairs;
  assert.ok(first !== undefined);
  const settings = [
    `PORT=${port}`,
    'MESH_THREADS=2',
    'MESH_DRAIN_SECONDS=0',
    'MESH_LOG_FILE=/var/lib/mesh-na/log',
    'MESH_TLS_CERT=/var/lib/mesh-na/served.crt',
    'MESH_TLS_KEY=/var/lib/mesh-na/served.pem',
  ];
  return startSystemd({
    units: {
      'mesh-na.service': deployed('mesh-na.service'),
      'mesh-na-signer.service': deployed('mesh-na-signer.service'),
      'mesh-na.service.d/signer.conf': signerDropIn(deployed('mesh-na-signer.service')),
    },
    binds: [
      [checkout, '/opt/mesh-na'],
      [realpathSync(join(PROJECT_PATH, 'node_modules')), '/opt/mesh-na/node_modules'],
      [process.execPath, NODE],
    ],
    prepare: `
        echo mesh-na-signing:x:64999: >> /etc/group
        mkdir -p /etc/mesh-na /etc/mesh-na-signer
        echo '${settings.join('\n')}' > /etc/mesh-na/environment
        ${documentedInit()}
        mv /var/lib/mesh-na/keys/na.key /etc/mesh-na-signer/na.key
        cp '${first.certFile}' /var/lib/mesh-na/served.crt
        cp '${first.keyFile}' /var/lib/mesh-na/served.pem`,
  });
}

/** Polls, because another process can only be observed. */
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`It has not come to this: ${what}`);
    await delay(50);
  }
}

test('both services start, reload, come back after a kill, and stop', {
  skip: lacking ?? false,
}, async () => {
  const port = await ownPort();
  await using systemd = await start(port);
  const { systemctl } = systemd;
  const log = () => readFileSync(systemd.path(`${STATE}/log`), 'utf8');
  const shown = async (unit: string, property: string) =>
    systemctl('show', unit, '--property', property, '--value');
  const uidOf = async (unit: string) =>
    statSync(`${systemd.path('/proc')}/${await shown(unit, 'MainPID')}`).uid;

  // The authority's unit wants the signer, so both start; this returns once the authority reports that it is ready.
  await systemctl('start', 'mesh-na.service');
  assert.equal(
    await systemctl('is-active', 'mesh-na.service', 'mesh-na-signer.service'),
    'active\nactive',
  );
  assert.equal((await ready(port, 'first')).enrollment, 'open', 'the signer signs');
  const users = [await uidOf('mesh-na.service'), await uidOf('mesh-na-signer.service')];
  assert.ok(
    users.every((uid) => uid >= 61_184 && uid <= 65_519),
    `dynamic users: ${users}`,
  );
  assert.notEqual(users[0], users[1]);

  replacePair(systemd, users[0] ?? 0);
  await systemctl('reload', 'mesh-na.service');
  await until('a new certificate', async () => (await nameServed(port)) === 'second');
  await until('the log says so', async () => /New connections use the new/.test(log()));

  await systemctl('kill', '--signal=SIGKILL', '--kill-whom=main', 'mesh-na-signer.service');
  await until(
    'the signer is back',
    async () => (await shown('mesh-na-signer.service', 'NRestarts')) === '1',
  );
  await systemctl('kill', '--signal=SIGKILL', '--kill-whom=main', 'mesh-na.service');
  await until(
    'the authority is back',
    async () => (await shown('mesh-na.service', 'NRestarts')) === '1',
  );
  await until('both are active', async () => {
    const states = [
      await shown('mesh-na.service', 'ActiveState'),
      await shown('mesh-na-signer.service', 'ActiveState'),
    ];
    return states.every((state) => state === 'active');
  });
  assert.equal((await ready(port, 'second')).status, 'ready');

  await systemctl('stop', 'mesh-na.service', 'mesh-na-signer.service');
  for (const unit of ['mesh-na.service', 'mesh-na-signer.service']) {
    assert.deepEqual(
      [
        await shown(unit, 'ActiveState'),
        await shown(unit, 'Result'),
        await shown(unit, 'ExecMainStatus'),
      ],
      ['inactive', 'success', '0'],
      unit,
    );
  }

  await systemd.run('sed', '-i', '/TLS\\|LOG_FILE/d', '/etc/mesh-na/environment');
  await systemctl('start', 'mesh-na.service');
  await systemctl('reload', 'mesh-na.service');
  const output = () => readFileSync(systemd.path('/run/output'), 'utf8');
  await until('the log says so', async () => /SIGHUP: nothing to reload/.test(output()));
  assert.equal(await shown('mesh-na.service', 'ActiveState'), 'active');
  await systemctl('stop', 'mesh-na.service', 'mesh-na-signer.service');
});

async function ready(port: number, pair: string) {
  const fetch = httpFetch(join(scratch, `${pair}.crt`));
  const signal = AbortSignal.timeout(30_000);
  const answer = await fetch(`https://127.0.0.1:${port}/readyz`, {
    method: 'GET',
    headers: {},
    redirect: 'error',
    signal,
  });
  return JSON.parse(await answer.text());
}

/** Replaces the pair as a renewal does: by renaming, with the service's user as the owner. */
function replacePair(systemd: Systemd, uid: number): void {
  for (const [from, to] of [
    ['second.crt', 'served.crt'],
    ['second.pem', 'served.pem'],
  ] as const) {
    const place = systemd.path(`${STATE}/${to}`);
    copyFileSync(join(scratch, from), `${place}.new`);
    chownSync(`${place}.new`, uid, uid);
    renameSync(`${place}.new`, place);
  }
}

async function nameServed(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const name = String(socket.getPeerCertificate().subject.CN);
  socket.destroy();
  return name;
}
