/** `mesh-na serve` as a process: what it prints, where its log goes, and which folder it fills. */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { packageVersion } from '../src/cli/version.ts';
import { startTestAuthority } from './support/authority.ts';
import {
  type ChildServer,
  NO_LIMITS,
  runProgram,
  startChildServer,
} from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { ownFolder, ownNetwork } from './support/folders.ts';
import { get, outcome } from './support/requests.ts';
import { activated, stage, succession } from './support/successions.ts';
import { until } from './support/until.ts';

const UNUSABLE = 3;
const IS_SERVED = /INFO mesh\.server Network alpha is served on http:\/\/127\.0\.0\.1:\d+\n/;

async function stopped(server: ChildServer) {
  const ended = await server.end('SIGTERM');
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

test('serve --json prints one JSON object on standard output, logs to standard error, and creates no second network', async () => {
  const dataDir = ownNetwork();
  // The number of threads is left to the program.
  const environment = { ...NO_LIMITS, MESH_THREADS: '' };
  const args = ['--key-id', 'na-1', '--create', '--network-name', 'gamma'];
  const server = await startChildServer(dataDir, { args, environment });
  await get(server.na, '/genesis');
  const { stdout, stderr } = await stopped(server);
  const { url, port, na_public_key, threads, ...served } = JSON.parse(stdout);
  assert.equal(stdout.split('\n').length, 2, 'one line');
  assert.equal(url, `http://127.0.0.1:${port}`);
  assert.equal(na_public_key, server.na.audience);
  assert.equal(threads, Math.min(availableParallelism(), 8));
  assert.deepEqual(served, {
    network_name: 'alpha',
    network_version: 'v0.1',
    key_id: 'na-1',
    operator_key_ids: ['ops-privileged', 'ops-standard'],
    data_dir: dataDir,
    log_file: null,
    version: packageVersion(),
    pid: server.process.pid,
    created: null,
  });
  assert.match(stderr, IS_SERVED);
  assert.match(stderr, /mesh\.access GET \/genesis 200 [\s\S]* Stopped\n$/);
});

test('the ready line names the key that signs, not the configured one, and a log on a full disk delays nothing', async () => {
  const dataDir = ownNetwork();
  const na = await startTestAuthority({ dataDir, clock: REAL_TIME, flags: { keyId: 'na-1' } });
  const signed = await succession(na);
  assert.equal(outcome(await stage(na, signed)), '200');
  await activated(na);
  await na.stop();
  const args = ['--key-id', 'na-1', '--log-file', '/dev/full'];
  const again = await startChildServer(dataDir, { args });
  assert.equal((await get(again.na, '/readyz')).status, 200);
  assert.equal((await get(again.na, '/metrics')).status, 200);
  const { stdout } = await stopped(again);
  const { na_public_key, key_id } = JSON.parse(stdout);
  const { to_key } = signed.statement;
  assert.deepEqual([na_public_key, key_id], [to_key, to_key]);
});

test('a log file gets every line, continues when it is moved away, and SIGHUP reopens it, or says in the previous one why not', async () => {
  const dataDir = ownNetwork();
  const folder = join(dataDir, 'logs');
  mkdirSync(folder);
  const log = join(folder, 'na.log');
  const server = await startChildServer(dataDir, { args: ['--log-file', log] });
  const moved = `${log}.1`;
  renameSync(log, moved);
  await get(server.na, '/policies/before-the-signal');
  await until(() => readFileSync(moved, 'utf8').includes('before-the-signal'));
  assert.ok(!existsSync(log));
  server.process.kill('SIGHUP');
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('reopened the log file'));
  await get(server.na, '/policies/after-the-signal');
  const away = join(dataDir, 'away');
  renameSync(folder, away);
  server.process.kill('SIGHUP');
  const lines = (name: string) => readFileSync(join(away, name), 'utf8');
  await until(() => lines('na.log').includes(' ERROR '));
  assert.match(lines('na.log'), /ERROR mesh\.server The log file .* cannot be opened \(ENOENT\)/);
  assert.equal((await get(server.na, '/readyz')).status, 200);
  const { stdout, stderr } = await stopped(server);
  assert.equal(JSON.parse(stdout).log_file, log);
  assert.equal(stderr, '');
  assert.match(lines('na.log.1'), IS_SERVED);
  assert.doesNotMatch(lines('na.log.1'), /after-the-signal/);
  assert.match(lines('na.log'), /after-the-signal[\s\S]* Stopped\n$/);
});

suite('serve --create', () => {
  test('fills an empty folder, and says so in the one object', async () => {
    const dataDir = ownFolder();
    const args = ['--create', '--network-name', 'beta'];
    const ended = await serveOnce(dataDir, args);
    const { network_name, created } = JSON.parse(ended.stdout);
    assert.equal(network_name, 'beta');
    assert.equal(created.genesis_file, join(dataDir, 'genesis.json'));
  });

  test('fills the root of a new file system, and logs only to standard output without --json', async () => {
    const dataDir = ownFolder();
    mkdirSync(join(dataDir, 'lost+found'));
    let signaled = false;
    const ended = await runProgram(
      ['serve', '--create', '--data-dir', dataDir, '--port', '0'],
      NO_LIMITS,
      (child) =>
        child.stdout?.on('data', (text: string) => {
          if (!signaled && text.includes(' is served on ')) signaled = child.kill('SIGTERM');
        }),
    );
    assert.equal(ended.code, 0);
    assert.match(ended.stdout, /^Network "local-mesh" created\.$/m);
    assert.match(ended.stdout, / Network local-mesh is served on http:/);
    assert.equal(ended.stderr, '');
  });

  test('refuses a folder with other files, names it, and leaves it as it is', async () => {
    const dataDir = ownFolder();
    writeFileSync(join(dataDir, 'thesis.txt'), 'years of work');
    const { code, stdout, stderr } = await runCommand(['serve', '--create', '--data-dir', dataDir]);
    assert.deepEqual([code, stdout], [UNUSABLE, '']);
    const said = `mesh-na: The data folder ${dataDir} contains other files, such as thesis.txt, so no network was created there; choose another folder with --data-dir\n`;
    assert.equal(stderr, said);
    assert.deepEqual(readdirSync(dataDir), ['thesis.txt']);
  });

  test('creates no network in an empty folder when genesis and key come from the environment', async () => {
    const from = ownNetwork();
    const dataDir = ownFolder();
    const environment = {
      ...NO_LIMITS,
      GENESIS_FILE: join(from, 'genesis.json'),
      NA_PRIVATE_KEY_FILE: join(from, 'keys', 'na.key'),
    };
    const { stdout } = await serveOnce(dataDir, ['--create'], 'SIGINT', environment);
    assert.equal(JSON.parse(stdout).network_name, 'alpha');
    assert.ok(!existsSync(join(dataDir, 'keys')));
  });
});

/** Starts the program on the folder, and stops it as soon as it is ready. */
async function serveOnce(
  dataDir: string,
  args: readonly string[],
  signal: 'SIGTERM' | 'SIGINT' = 'SIGTERM',
  environment: Readonly<Record<string, string>> = NO_LIMITS,
) {
  const ended = await runProgram(
    ['serve', '--data-dir', dataDir, '--port', '0', '--json', ...args],
    environment,
    (child) => child.stdout?.once('data', () => child.kill(signal)),
  );
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}
