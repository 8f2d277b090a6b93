/** `mesh-na serve` as a process: what it prints, where its log goes, and which folder it fills. */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { packageVersion } from '../src/cli/version.ts';
import {
  type ChildServer,
  NO_LIMITS,
  runProgram,
  startChildServer,
} from './support/child-server.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { get, outcome } from './support/requests.ts';
import { activated, stage, succession } from './support/successions.ts';
import { until } from './support/until.ts';

const UNUSABLE = 3;
const IS_SERVED = /INFO mesh\.server Network alpha is served on http:\/\/127\.0\.0\.1:\d+\n/;

function scratchFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-serve-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function networkFolder(t: TestContext): string {
  const { folder } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function stopped(server: ChildServer) {
  const ended = await server.end('SIGTERM');
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

test('serve --json prints one JSON object on standard output, and logs to standard error', async (t) => {
  const dataDir = networkFolder(t);
  const server = await startChildServer(dataDir, { args: ['--key-id', 'na-1'] });
  await get(server.na, '/genesis');
  const { stdout, stderr } = await stopped(server);
  const { url, port, na_public_key, threads, ...served } = JSON.parse(stdout);
  assert.equal(stdout.split('\n').length, 2, 'one line');
  assert.equal(url, `http://127.0.0.1:${port}`);
  assert.equal(na_public_key, server.na.audience);
  assert.ok(threads >= 1);
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

test('the ready line names the key that signs, not the configured one', async (t) => {
  const dataDir = networkFolder(t);
  const { na } = await startChildServer(dataDir, { args: ['--key-id', 'na-1'] });
  const signed = await succession(na);
  assert.equal(outcome(await stage(na, signed)), '200');
  await activated(na);
  await na.stop();
  const again = await startChildServer(dataDir, { args: ['--key-id', 'na-1'] });
  const { stdout } = await stopped(again);
  const { na_public_key, key_id } = JSON.parse(stdout);
  const { to_key } = signed.statement;
  assert.deepEqual([na_public_key, key_id], [to_key, to_key]);
});

test('serve without --json logs only to standard output', async (t) => {
  let signaled = false;
  const ended = await runProgram(
    ['serve', '--data-dir', networkFolder(t), '--port', '0'],
    NO_LIMITS,
    (child) =>
      child.stdout?.on('data', (text: string) => {
        if (!signaled && text.includes(' is served on ')) signaled = child.kill('SIGTERM');
      }),
  );
  assert.equal(ended.code, 0);
  assert.match(ended.stdout, IS_SERVED);
  assert.equal(ended.stderr, '');
});

suite('a log file', () => {
  test('gets every line, continues when it is moved away, and SIGHUP reopens it', async (t) => {
    const dataDir = networkFolder(t);
    const log = join(dataDir, 'na.log');
    const server = await startChildServer(dataDir, { args: ['--log-file', log] });
    const moved = `${log}.1`;
    renameSync(log, moved);
    await get(server.na, '/policies/before-the-signal');
    await until(() => readFileSync(moved, 'utf8').includes('before-the-signal'));
    assert.ok(!existsSync(log));
    server.process.kill('SIGHUP');
    await until(
      () => existsSync(log) && readFileSync(log, 'utf8').includes('reopened the log file'),
    );
    await get(server.na, '/policies/after-the-signal');
    const { stdout, stderr } = await stopped(server);
    assert.equal(JSON.parse(stdout).log_file, log);
    assert.equal(stderr, '');
    assert.match(readFileSync(moved, 'utf8'), IS_SERVED);
    assert.doesNotMatch(readFileSync(moved, 'utf8'), /after-the-signal/);
    assert.match(readFileSync(log, 'utf8'), /after-the-signal[\s\S]* Stopped\n$/);
  });

  test('that cannot be reopened is reported in the previous one, and the service continues', async (t) => {
    const dataDir = networkFolder(t);
    const folder = join(dataDir, 'logs');
    mkdirSync(folder);
    const args = ['--log-file', join(folder, 'na.log')];
    const server = await startChildServer(dataDir, { args });
    const moved = join(dataDir, 'moved');
    renameSync(folder, moved);
    server.process.kill('SIGHUP');
    const lines = () => readFileSync(join(moved, 'na.log'), 'utf8');
    await until(() => lines().includes(' ERROR '));
    assert.match(lines(), /ERROR mesh\.server The log file .* cannot be opened \(ENOENT\)/);
    assert.equal((await get(server.na, '/readyz')).status, 200);
    await stopped(server);
    assert.match(lines(), / Stopped\n$/);
  });

  test('on a full disk delays nothing', async (t) => {
    const server = await startChildServer(networkFolder(t), { args: ['--log-file', '/dev/full'] });
    assert.equal((await get(server.na, '/readyz')).status, 200);
    const dropped = async () => String((await get(server.na, '/metrics')).body);
    assert.equal(typeof (await dropped()), 'string');
    await stopped(server);
  });
});

suite('serve --create', () => {
  test('fills an empty folder, and says so in the one object', async (t) => {
    const dataDir = scratchFolder(t);
    const args = ['--create', '--network-name', 'beta'];
    const ended = await serveOnce(dataDir, args);
    const { network_name, created } = JSON.parse(ended.stdout);
    assert.equal(network_name, 'beta');
    assert.equal(created.genesis_file, join(dataDir, 'genesis.json'));
    assert.equal(JSON.parse((await serveOnce(dataDir, args)).stdout).created, null, 'only once');
  });

  test('fills the root of a new file system', async (t) => {
    const dataDir = scratchFolder(t);
    mkdirSync(join(dataDir, 'lost+found'));
    const { stdout } = await serveOnce(dataDir, ['--create']);
    assert.equal(JSON.parse(stdout).network_name, 'local-mesh');
  });

  test('refuses a folder with other files, names it, and leaves it as it is', async (t) => {
    const dataDir = scratchFolder(t);
    writeFileSync(join(dataDir, 'thesis.txt'), 'years of work');
    const { code, stdout, stderr } = await runProgram(['serve', '--create', '--data-dir', dataDir]);
    assert.deepEqual([code, stdout], [UNUSABLE, '']);
    const said = `mesh-na: The data folder ${dataDir} contains other files, such as thesis.txt, so no network was created there; choose another folder with --data-dir\n`;
    assert.equal(stderr, said);
    assert.deepEqual(readdirSync(dataDir), ['thesis.txt']);
  });

  test('creates no network in an empty folder when genesis and key come from the environment', async (t) => {
    const from = networkFolder(t);
    const dataDir = scratchFolder(t);
    const environment = {
      ...NO_LIMITS,
      GENESIS_FILE: join(from, 'genesis.json'),
      NA_PRIVATE_KEY_FILE: join(from, 'keys', 'na.key'),
    };
    const { stdout } = await serveOnce(dataDir, ['--create'], environment);
    assert.equal(JSON.parse(stdout).network_name, 'alpha');
    assert.ok(!existsSync(join(dataDir, 'keys')));
  });
});

test('a misspelled variable causes a warning with the most similar setting, and others do not', async (t) => {
  const environment = {
    ...NO_LIMITS,
    MESH_LOG_LEVL: 'DEBUG',
    MESH_PORT: '1',
    MESH_RATE_LIMIT_ADMINS: 'off',
    MESH_RATE_LIMIT_ADMIN_FAILURES: '30/60',
    MESH_URL: 'http://127.0.0.1:1',
    MESH_PROFILE: 'default',
    MESH_NA_PORT: 'tcp://10.0.0.1:8443',
    MESH_NA_SERVICE_HOST: '10.0.0.1',
    MESH_NA_PORT_8443_TCP_ADDR: '10.0.0.1',
    MESHED: 'x',
  };
  const { stderr } = await serveOnce(networkFolder(t), [], environment);
  const warnings = stderr.split('\n').filter((line) => line.includes(' The variable '));
  assert.deepEqual(
    warnings.map((line) => line.slice(line.indexOf('The variable'))),
    [
      'The variable MESH_LOG_LEVL is not a setting and has no effect; did you mean MESH_LOG_LEVEL?',
      'The variable MESH_PORT is not a setting and has no effect; did you mean PORT?',
      'The variable MESH_RATE_LIMIT_ADMINS is not a setting and has no effect; did you mean MESH_RATE_LIMIT_ADMIN?',
      'The variable MESH_RATE_LIMIT_ADMIN_FAILURES is not a setting and has no effect; remove it',
    ],
  );
});

/** Starts the program on the folder, and stops it as soon as it is ready. */
async function serveOnce(
  dataDir: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = NO_LIMITS,
) {
  const ended = await runProgram(
    ['serve', '--data-dir', dataDir, '--port', '0', '--json', ...args],
    environment,
    (child) => child.stdout?.once('data', () => child.kill('SIGTERM')),
  );
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}
