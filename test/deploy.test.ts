/** The files in docs/deploy, checked by the programs that they are for. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { httpFetch } from '../src/cli/connection/server.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { runProgram, startChildServer } from './support/child-server.ts';
import { SECOND } from './support/clock.ts';
import { makeNetworkFolder, ownFolder, ownNetwork } from './support/folders.ts';
import { findProgram } from './support/programs.ts';
import { PROJECT, PROJECT_PATH } from './support/project.ts';
import { get, heartbeat, joinedNode } from './support/requests.ts';
import { sharedCluster } from './support/shared-cluster.ts';
import { makeTlsPair } from './support/tls-files.ts';

const cluster = await sharedCluster();

const run = promisify(execFile);
const folder = ownFolder();

const deployed = (name: string) => readFileSync(new URL(`docs/deploy/${name}`, PROJECT), 'utf8');
const absent = (program: string) =>
  findProgram([program], process.env) === null ? `${program} is not installed` : false;

suite('the units of systemd', { skip: absent('systemd-analyze') }, () => {
  for (const name of ['mesh-na.service', 'mesh-na-signer.service']) {
    /** The sample, with this machine's Node.js and without a manual page that would have to be installed. */
    const unit = join(folder, name);
    const text = deployed(name).replace(/^Documentation=.*$/m, '');
    writeFileSync(unit, text.replace('/usr/bin/node', process.execPath));

    test(`systemd finds nothing wrong with ${name}`, async () => {
      const { stdout, stderr } = await run('systemd-analyze', ['verify', unit]);
      assert.equal(stdout + stderr, '');
    });

    test(`${name} drops every privilege that the program does not need`, async () => {
      const { stdout } = await run('systemd-analyze', ['security', '--offline=yes', unit]);
      const exposure = Number(/Overall exposure level for .*: ([\d.]+)/.exec(stdout)?.[1]);
      assert.ok(exposure < 2, `the exposure is ${exposure}`);
    });
  }

  test('the service reports when it is ready and when it stops', async () => {
    const socket = join(folder, 'notify');
    const receiver = spawn('perl', ['-e', RECEIVER, socket], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const messages = receiver.stdout.setEncoding('utf8')[Symbol.asyncIterator]();
    while (!existsSync(socket)) await delay(10);
    const { folder: dataDir } = makeNetworkFolder();
    const server = await startChildServer(dataDir, { environment: { NOTIFY_SOCKET: socket } });
    try {
      assert.match(String((await messages.next()).value), /READY=1/);
      await server.end('SIGTERM');
      // The service has waited until its last message was read.
      receiver.kill();
      assert.match(String((await messages.next()).value), /STOPPING=1/);
    } finally {
      await server[Symbol.asyncDispose]();
      receiver.kill();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

/** Prints what is sent to a datagram socket, which Node.js cannot open. */
const RECEIVER = `
  use Socket; $| = 1;
  socket(S, PF_UNIX, SOCK_DGRAM, 0) or die; bind(S, sockaddr_un($ARGV[0])) or die;
  while (defined recv(S, my $m, 4096, 0)) { print $m if $m =~ /READY|STOPPING/; }`;

suite('the alerts', { skip: absent('promtool') }, () => {
  const rules = join(PROJECT_PATH, 'docs/deploy/prometheus-rules.yml');

  test('are valid for Prometheus', async () => {
    const { stdout } = await run('promtool', ['check', 'rules', rules]);
    assert.match(stdout, /SUCCESS: \d+ rules found/);
  });

  const cases = join(PROJECT_PATH, 'test/prometheus-rules.test.yml');

  test('each fires when its condition occurs, and not before', async () => {
    const { stdout } = await run('promtool', ['test', 'rules', cases]);
    assert.match(stdout, /SUCCESS/);
  });

  test('each can be made to fire, and its metric also exists while all is well', () => {
    const [firing = '', quiet = ''] = readFileSync(cases, 'utf8')
      .split(/^ {2}- name: /m)
      .slice(1);
    const alerts = alertsIn(deployed('prometheus-rules.yml'));
    const fired = [...firing.matchAll(/alertname="(\w+)"/g)].map(([, name]) => name);
    assert.deepEqual(fired.toSorted(), alerts.map(({ name }) => name).toSorted());
    assert.match(quiet, /exp_samples: \[\]/);
    for (const { name, expression } of alerts) {
      const watched = [...expression.matchAll(/\b(?:up|mesh_na_\w+)\b(?:\{([^}]*)\})?/g)];
      assert.ok(watched.length > 0, name);
      for (const [selected, labels = ''] of watched) {
        const metric = selected.replace(/\{.*/, '');
        for (const given of [firing, quiet]) {
          const series = given.split('\n').filter((line) => line.includes(`series: '${metric}`));
          assert.ok(
            series.some((line) => line.includes(labels)),
            `${name} lacks ${selected}`,
          );
        }
      }
    }
  });
});

test("the command of the signer's unit signs for the group", async () => {
  const dataDir = ownNetwork();
  const [, command = ''] =
    /^ExecStart=\S+ \S+ (.*)$/m.exec(deployed('mesh-na-signer.service')) ?? [];
  const args = command
    .replace(/\$\{CREDENTIALS_DIRECTORY\}/, join(dataDir, 'keys'))
    .replace('/run/mesh-na-signer', folder)
    .split(' ');
  let signer: ChildProcess | undefined;
  const ended = runProgram(args, {}, (process) => {
    signer = process;
  });
  const socket = join(folder, 'signer.sock');
  while (!existsSync(socket) || (statSync(socket).mode & 0o777) !== 0o660) await delay(10);
  signer?.kill('SIGTERM');
  assert.equal((await ended).code, 0);
});

/** The alerts in the rules, with their expressions. */
function alertsIn(rules: string): { name: string; expression: string }[] {
  const found = rules.matchAll(/alert: (\w+)\n +expr: '(.*)'/g);
  const alerts = [...found].map(([, name = '', expression = '']) => ({ name, expression }));
  assert.equal(alerts.length, [...rules.matchAll(/alert:/g)].length);
  return alerts;
}

test('a live authority has every metric and label that alerts and panels name', async () => {
  const pair = makeTlsPair(folder, 'metrics');
  const flags = { tlsCert: pair.certFile, tlsKey: pair.keyFile };
  await using na = await startTestAuthority({ flags });
  const fetch = httpFetch(pair.certFile);
  const ask = (path: string, headers = {}) => {
    const signal = AbortSignal.timeout(30_000);
    return fetch(`${na.url}${path}`, { method: 'GET', headers, redirect: 'error', signal });
  };
  const forged = Object.fromEntries(
    ['key-id', 'timestamp', 'nonce', 'signature'].map((name) => [`x-admin-${name}`, 'x']),
  );
  await ask('/nodes', forged);
  await na.flush();
  // It is counted when someone requests it, at most once per second.
  na.clock.advance(SECOND);
  await ask('/dashboard.json');
  await using inDatabase = await startInDatabase();
  await heartbeat(inDatabase, await joinedNode(inDatabase));
  await get(inDatabase, '/dashboard.json');
  const served = `${await (await ask('/metrics')).text()}${(await get(inDatabase, '/metrics')).text}`;
  // Prometheus gives each sample labels of these names.
  const metrics = served.replaceAll(/([{,])(job|instance)=/g, '$1exported_$2=');

  const grafana = JSON.parse(deployed('grafana.json')) as {
    panels: { targets: { expr: string; legendFormat: string }[] }[];
  };
  const expressions = [
    ...alertsIn(deployed('prometheus-rules.yml')).map(({ expression }) => expression),
    ...grafana.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ];
  assert.ok(expressions.length > 25);
  for (const expression of expressions) {
    for (const [, name, selector] of expression.matchAll(/\b(mesh_na_\w+)(?:\{([^}]*)\})?/g)) {
      const typed = new RegExp(`^# TYPE ${name?.replace(/_bucket$/, '')} `, 'm');
      assert.match(metrics, typed, `${name} of ${expression}`);
      for (const label of (selector ?? '').split(',').filter((text) => text !== '')) {
        const sample = new RegExp(`^${name}\\{[^}]*${label}`, 'm');
        assert.match(metrics, sample, `${label} of ${expression}`);
      }
    }
    for (const [, labels] of expression.matchAll(/\bby \(([^)]*)\)/g)) {
      for (const label of labels?.split(', ') ?? []) {
        const names = [...expression.matchAll(/\b(mesh_na_\w+)/g)].map(([, name]) => name);
        // Rate limit counters have no sample before the first refusal.
        if (names.includes('mesh_na_rate_limited_total')) continue;
        assert.match(metrics, new RegExp(`^${names[0]}\\{[^}]*\\b${label}="`, 'm'), expression);
      }
    }
  }
});

/** Starts an instance as one of several on a database. */
async function startInDatabase(): Promise<TestAuthority> {
  const store = await cluster.createStore();
  return startTestAuthority({ flags: { store, link: '127.0.0.1:0' } });
}

test('the panels of Grafana are one dashboard with ids of their own', () => {
  const { panels, title } = JSON.parse(deployed('grafana.json'));
  assert.equal(title, 'Network Authority');
  assert.equal(new Set(panels.map(({ id }: { id: number }) => id)).size, panels.length);
});
