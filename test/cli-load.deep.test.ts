/** The commands of `npm run load` against real servers. */
import assert from 'node:assert/strict';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { readFleet } from '../bench/load/fleet-folder.ts';
import { measure, type RunPlan } from '../bench/load/measure.ts';
import { buildLoadProgram } from '../bench/load/program.ts';
import { type RunReport, readRunReport } from '../bench/load/run-report.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { networkFolder, scratchFolder } from './support/folders.ts';
import { joinedNode } from './support/requests.ts';
import { LMDB_ONLY } from './support/test-stores.ts';
import { makeTlsPair } from './support/tls-files.ts';

const authority = sharedAuthority({ clock: REAL_TIME });

const runLoad = (args: readonly string[]) => runCommand(args, {}, buildLoadProgram);

async function load(na: TestAuthority, args: readonly string[]) {
  const [command = '', ...rest] = args;
  const folder = command === 'prepare' ? ['--data-dir', na.dataDir] : [];
  return runLoad([command, '--url', na.url, ...folder, ...rest]);
}

async function prepare(na: TestAuthority, fleet: string, nodes: number): Promise<void> {
  const args = ['prepare', '--fleet', fleet, '--nodes', String(nodes), '--yes', 'alpha', '--json'];
  const { code, stdout, stderr } = await load(na, args);
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).nodes, nodes);
}

const SHORT = ['--for', '1s', '--warm-up', '0s', '--yes', 'alpha'];

async function run(
  na: TestAuthority,
  fleet: string,
  more: readonly string[],
  connections = 4,
): Promise<RunReport> {
  const sent = ['--rate', '40', '--connections', String(connections)];
  const args = ['run', '--fleet', fleet, ...sent, ...SHORT, '--json', ...more];
  const { code, stdout, stderr } = await load(na, args);
  assert.equal(code, 0, stderr);
  const report = readRunReport(JSON.parse(stdout));
  assert.ok(report, stdout);
  return report;
}

/** On a busy machine some requests may not be sent in time, but none may fail. */
function assertNoneFailed(report: RunReport): void {
  assert.deepEqual([report.errors, report.answered_429, report.answered_503], [{}, 0, 0]);
  assert.ok(report.accepted > 0);
  assert.equal(report.accepted + report.unsent, report.due);
}

suite('a fleet', { concurrency: false }, () => {
  test('is enrolled, continued and measured, and keeps the certificates that it renewed', async () => {
    await using scratch = scratchFolder();
    const fleet = join(scratch.path, 'fleet');
    const na = await authority();
    await prepare(na, fleet, 20);
    await prepare(na, fleet, 30);
    assert.equal(readFleet(fleet)?.nodes.length, 30);
    const report = await run(na, fleet, ['--bulletins', '--mix', 'heartbeat=3,renew=1']);
    assertNoneFailed(report);
    assert.deepEqual([report.nodes, report.due, report.network_name], [30, 40, 'alpha']);
    assert.ok(report.service !== null && report.service.requests >= report.accepted - 1);
    assert.ok(report.generator.signing_limit > 0);
    const held = readFleet(fleet);
    assert.equal(held?.certificates, 30 + (report.kinds.renew?.accepted ?? 0));
    assert.equal(held?.nodes.length, 30);
    const renewed = await load(na, [
      'run',
      '--fleet',
      fleet,
      '--rate',
      '40',
      ...SHORT,
      '--connections',
      '4',
    ]);
    assert.match(
      renewed.stdout,
      /^rate +40\/s asked, .*\nlatency +p50 .*\n(?: .*\n)+429 +0\n503 +0\nerrors +none\n/m,
    );
    assert.match(
      renewed.stdout,
      /^service +[\d.]+ µs of CPU .*\ngenerator +up to \d+ requests\/s/m,
    );
  });

  test('returns in a storm', async () => {
    await using scratch = scratchFolder();
    const fleet = join(scratch.path, 'fleet');
    const na = await authority();
    await prepare(na, fleet, 25);
    const storm = ['storm', '--fleet', fleet, '--nodes', '20', '--yes', 'alpha'];
    const { code, stdout, stderr } = await load(na, [...storm, '--timeout', '5m', '--json']);
    assert.equal(code, 0, stderr);
    const { beaten, sent, refused } = JSON.parse(stdout);
    assert.deepEqual([beaten, sent >= 20, refused], [20, true, {}]);
    const text = await load(na, [...storm, '--within', '0s']);
    assert.match(text.stdout, /^20 nodes returned within 0 s over 20 connections: every node/);
    const more = await load(na, ['storm', '--fleet', fleet, '--nodes', '26', '--yes', 'alpha']);
    assert.deepEqual([more.code, more.stderr], [2, 'mesh-na: The fleet has only 25 nodes\n']);
  });

  test('is measured at several rates', async () => {
    await using scratch = scratchFolder();
    const fleet = join(scratch.path, 'fleet');
    const na = await authority();
    await prepare(na, fleet, 10);
    const rates = ['--from', '20', '--highest', '20', '--connections', '4'];
    const find = ['find', '--fleet', fleet, ...rates, ...SHORT];
    const held = await load(na, [...find, '--slo', 'max=600s']);
    assert.match(held.stdout, /^RATE +REACHED +P50 MS/);
    const missed = await load(na, [...find, '--slo', 'p50=0.001ms']);
    assert.equal(missed.code, 4);
    assert.match(missed.stdout, /No rate meets p50=0.001ms/);
  });
});

test('a fleet is enrolled and measured over TLS', async () => {
  await using scratch = scratchFolder();
  const { certFile, keyFile } = makeTlsPair(scratch.path, 'na');
  const flags = { tlsCert: certFile, tlsKey: keyFile };
  await using na = await startTestAuthority({ clock: REAL_TIME, flags });
  const fleet = join(scratch.path, 'fleet');
  const trusting = ['--ca', certFile];
  const prepared = await load(na, ['prepare', '--nodes', '2', '--fleet', fleet, ...trusting]);
  assert.equal(prepared.code, 0, prepared.stderr);
  assertNoneFailed(await run(na, fleet, trusting));
});

suite('a network with other nodes', { concurrency: false }, () => {
  test('gets no load unless its name is given', async () => {
    await using scratch = scratchFolder();
    const fleet = join(scratch.path, 'fleet');
    await using na = await startTestAuthority({ clock: REAL_TIME });
    await prepare(na, fleet, 3);
    const args = ['run', '--fleet', fleet, '--rate', '5', '--for', '1s', '--warm-up', '0s'];
    assert.equal((await load(na, args)).code, 0);
    await joinedNode(na);
    const refused = await load(na, args);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /"alpha" has issued 1 certificate that is not of this fleet/);
    assert.match(refused.stderr, /nothing was sent: use --yes alpha/);
    const other = await load(na, [...args, '--yes', 'beta']);
    assert.deepEqual([other.code, /not "beta"/.test(other.stderr)], [2, true]);
    assert.equal((await load(na, [...args, '--yes', 'alpha'])).code, 0);
    const unprepared = ['prepare', '--fleet', join(scratch.path, 'new'), '--nodes', '1'];
    assert.equal((await load(na, unprepared)).code, 2);
  });

  test('gets no load from the fleet of another network', async () => {
    await using scratch = scratchFolder();
    const fleet = join(scratch.path, 'fleet');
    await using na = await startTestAuthority({ clock: REAL_TIME });
    await prepare(na, fleet, 1);
    const { code, stderr } = await load(await authority(), [
      ...['run', '--fleet', fleet, '--rate', '5', '--yes', 'alpha'],
    ]);
    assert.deepEqual([code, /belongs to the authority/.test(stderr)], [3, true]);
  });
});

test('a harness resets a run by copying the data folder and the fleet', LMDB_ONLY, async () => {
  await using scratch = scratchFolder();
  await using network = networkFolder('alpha');
  const place = (name: string) => (name === 'data' ? network.path : join(scratch.path, name));
  const options = { clock: REAL_TIME, dataDir: network.path };
  function copy(from: string, to: string): void {
    rmSync(place(to), { recursive: true, force: true });
    cpSync(place(from), place(to), { recursive: true });
  }
  // Without --yes: nothing left from the last round may look like someone else's node.
  const args = ['run', '--fleet', place('fleet'), '--rate', '40', '--for', '1s', '--warm-up', '0s'];

  const seeding = await startTestAuthority(options);
  await prepare(seeding, place('fleet'), 5);
  await seeding.stop();
  for (const name of ['data', 'fleet']) copy(name, `${name}.seed`);
  for (let round = 1; round <= 2; round += 1) {
    const na = await startTestAuthority(options);
    const ended = await load(na, [...args, '--mix', 'heartbeat=3,renew=1', '--json']);
    assert.equal(ended.code, 0, ended.stderr);
    assertNoneFailed(JSON.parse(ended.stdout));
    await prepare(na, place('fleet'), 6);
    await na.stop();
    copy('data.seed', 'data');
    if (round === 1) copy('fleet.seed', 'fleet');
  }
  const na = await startTestAuthority(options);
  const { stdout } = await load(na, [...args, '--mix', 'heartbeat=1']);
  await na.stop();
  assert.match(stdout, /^errors +403 certificate_not_found: \d+$/m, 'the fleet was not reset');
  assert.match(stdout, /copy the folder of the fleet together with the data folder/);
});

/** Answers every request after `delayMs`, cycling through the statuses. */
async function serve(delayMs: number, statuses: readonly number[], onAnswer = () => {}) {
  let answered = 0;
  const server = createServer((request, response) => {
    request.resume();
    if (request.url === '/metrics') return response.writeHead(404).end();
    const status = statuses[answered % statuses.length] ?? 200;
    answered += 1;
    onAnswer();
    const body = status === 200 ? '{"cert_id":"next"}' : '{"error":{"code":"out_of_order"}}';
    response.setHeader('Content-Length', body.length);
    return setTimeout(() => response.writeHead(status).end(body), delayMs);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function plan(port: number, given: Partial<RunPlan> = {}): RunPlan {
  const network = { network_name: 'alpha', authority_key: '', validity_hours: 1 } as const;
  const nodes = [1, 2].map((byte) => ({
    seed: Buffer.alloc(32, byte).toString('base64'),
    cert_id: `cert-${byte}`,
  }));
  return {
    url: `http://127.0.0.1:${port}`,
    place: { target: { port }, site: { host: 'localhost', prefix: '' } },
    fleet: { network: { version: 1, ...network }, nodes, certificates: 2 },
    mix: { heartbeat: 1 },
    bulletins: false,
    sessions: false,
    rate: 20,
    seconds: 1,
    warmUpSeconds: 0,
    connections: 32,
    patienceMs: 60_000,
    signingThreads: 1,
    stopped: new AbortController().signal,
    renewed: () => undefined,
    ...given,
  };
}

async function measured(given: RunPlan): Promise<RunReport> {
  const report = await measure(given);
  assert.ok(report);
  return report;
}

suite('a server that is slow or refuses', () => {
  test('is measured as at least as slow as it is', async () => {
    await using server = await serve(150, [200]);
    const report = await measured(plan(server.port));
    // A timer of the server may fire up to a millisecond early.
    assert.ok(report.latency_ms.p50 >= 149, `${report.latency_ms.p50} ms`);
    assert.deepEqual([report.accepted, report.service], [20, null]);
  });

  test('has its refusals counted by code, with 429 and 503 separate', async () => {
    await using server = await serve(0, [200, 429, 503, 403]);
    const report = await measured(plan(server.port));
    assert.deepEqual(
      [report.accepted, report.answered_429, report.answered_503, report.errors],
      [5, 5, 5, { '403 out_of_order': 5 }],
    );
  });

  test('loses what it does not answer in time', async () => {
    await using server = await serve(60_000, [200]);
    const report = await measured(plan(server.port, { patienceMs: 100, rate: 5 }));
    assert.deepEqual([report.accepted, report.errors], [0, { timeout: 5 }]);
    assert.ok(report.latency_ms.p50 >= 100);
  });
});

test('a run that is stopped saves the certificates that it renewed', async () => {
  const stop = new AbortController();
  await using server = await serve(0, [200], () => stop.abort());
  const renewed: string[] = [];
  const report = await measure(
    plan(server.port, {
      mix: { renew: 1 },
      seconds: 600,
      stopped: stop.signal,
      renewed: (nodes) => renewed.push(...nodes.map(({ cert_id }) => cert_id)),
    }),
  );
  assert.deepEqual([report, renewed], [null, ['next']]);
});

suite('wrong usage', { concurrency: false }, () => {
  const nowhere = ['--url', 'http://127.0.0.1:9', '--fleet', '/nonexistent'];
  for (const [args, code, message] of [
    [['run', '--rate', '5', ...nowhere], 3, /has no fleet; run npm run load -- prepare/],
    [['run', ...nowhere], 2, /--rate/],
    [['find', '--slo', 'fast', ...nowhere], 2, /--slo takes objectives/],
    [
      ['run', '--rate', '5', '--mix', 'all', ...nowhere],
      2,
      /shares of heartbeat, renew, crl, verify/,
    ],
    [['run', '--rate', '5', '--for', 'long', ...nowhere], 2, /must be a duration/],
    [['run', '--rate', '5', '--for', '0s', ...nowhere], 2, /must be a duration/],
    [['compare', '/nonexistent', '/nonexistent'], 3, /cannot be opened/],
  ] as const) {
    test(`${args.slice(0, 3).join(' ')} is explained`, async () => {
      const ended = await runLoad(args);
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stderr, message);
    });
  }

  test('a fleet that is too small for the rate is explained', async () => {
    await using scratch = scratchFolder();
    const fleet = join(scratch.path, 'fleet');
    const na = await authority();
    await prepare(na, fleet, 1);
    const { code, stderr } = await load(na, ['run', '--fleet', fleet, '--rate', '501']);
    assert.equal(code, 2);
    assert.match(stderr, /at most 500 requests\/s, .*; 501\/s need 2 nodes/);
  });
});

test('two saved runs can be compared', async () => {
  await using scratch = scratchFolder();
  const fleet = join(scratch.path, 'fleet');
  const na = await authority();
  await prepare(na, fleet, 2);
  const files = ['a.json', 'b.json'].map((name) => join(scratch.path, name)) as [string, string];
  for (const [index, file] of files.entries()) {
    writeFileSync(file, JSON.stringify(await run(na, fleet, [], index + 1)));
  }
  const { code, stdout } = await runLoad(['compare', ...files]);
  assert.equal(code, 0);
  assert.match(stdout, /^FIGURE +FIRST +SECOND +CHANGE\nrequests\/s /);
  assert.match(stdout, /The runs differ in connections: 1, 2\./);
});
