/** The exit codes and messages of the program if it does not start, or only checks its settings. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import { suite, test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { type Ended, runProgram } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { genesisWith, KEY, remove, setupOf } from './support/refused-starts.ts';
import { get, newKey, operate, outcome } from './support/requests.ts';
import { LMDB_ONLY } from './support/test-stores.ts';

const START_REFUSED = 3;

/** Drops root privileges once Node.js is running. */
const AS_NOBODY = `data:text/javascript,${encodeURIComponent('process.setgid(65534); process.setgroups([]); process.setuid(65534);')}`;

suite('the program ends with 3 and says why', () => {
  const serve = (folder: string, ...more: string[]) =>
    runCommand(['serve', '--data-dir', folder, ...more]);

  test('as a process', async () => {
    const setup = setupOf();
    remove('keys/na.key')(setup);
    assertRefused(
      await runProgram(['serve', '--data-dir', setup.folder]),
      /key file .*na\.key cannot be read/,
    );
  });

  test('an operator key without tier, by its flag', async () => {
    const { folder } = setupOf();
    const key = ['--operator-public-key', `ops-2=${KEY}`];
    assertRefused(await serve(folder, ...key), /Operator key ops-2 has no tier/);
  });

  test('with --json, as one JSON object', async () => {
    const { folder } = setupOf();
    const tier = ['--operator-key-tier', 'ops-9=standard'];
    const { code, stdout, stderr } = await serve(folder, '--json', ...tier);
    assert.equal(code, START_REFUSED);
    assert.equal(stdout, '');
    const message = 'Operator key ops-9 has a tier but is not configured';
    assert.deepEqual(JSON.parse(stderr), { error: { code: 'local_files', message } });
    assert.equal(stderr.split('\n').length, 2);
  });

  test('a data folder that a running authority holds, with --json', LMDB_ONLY, async () => {
    await using na = await startTestAuthority({ clock: REAL_TIME });
    const args = ['serve', '--data-dir', na.dataDir, '--port', '0', '--json'];
    const { code, stdout, stderr } = await runProgram(args);
    assert.deepEqual([code, stdout], [START_REFUSED, '']);
    const holder = `pid ${process.pid} on ${hostname()}`;
    assert.deepEqual(JSON.parse(stderr), {
      error: {
        code: 'start_refused',
        message: `The data directory is in use by another process (${holder}); stop that one, or name another folder than ${na.dataDir} by --data-dir`,
      },
    });
    assert.equal(outcome(await operate(na, '/admin/invite')), '200', 'its holder goes on');
  });

  test('a port in use, after which the data folder is free again', LMDB_ONLY, async () => {
    const setup = setupOf();
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const address = taken.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const start = { dataDir: setup.folder, clock: REAL_TIME };
    const holder = existsSync('/proc/net/tcp')
      ? `process ${process.pid} \\(.+\\)`
      : 'another process';
    await assert.rejects(startTestAuthority({ ...start, flags: { port } }), {
      message: new RegExp(
        `^Cannot listen on 127\\.0\\.0\\.1:${port}: ${holder} is using it; stop that process, or choose another port with --port$`,
      ),
    });
    taken.close();
    await using na = await startTestAuthority(start);
    assert.equal((await get(na, '/readyz')).status, 200);
  });

  test('an address of another machine', async () => {
    await assert.rejects(
      startTestAuthority({ flags: { host: '192.0.2.1' } }),
      /Cannot listen on 192\.0\.2\.1:0: this machine does not have that address; /,
    );
  });

  test('a folder and files that this user may not open', {
    skip: process.getuid?.() !== 0 && 'only root can become another user',
  }, async () => {
    const setup = setupOf();
    const nobody = { NODE_OPTIONS: `--import=${AS_NOBODY}` };
    const start = () => runProgram(['serve', '--data-dir', setup.folder, '--port', '0'], nobody);
    chmodSync(setup.folder, 0o755);
    chmodSync(setup.path('genesis.json'), 0o600);
    assertRefused(
      await start(),
      /genesis file .* cannot be read \(EACCES\); let the user of this /,
    );
  });

  test('a data folder that is a file', async () => {
    const setup = setupOf();
    setup.write('file', '');
    assertRefused(
      await serve(setup.path('file')),
      /The data folder .*file is not a folder; choose another with --data-dir/,
    );
  });
});

test('a start merges the sources, allows an unsigned genesis, and puts a flag above a variable', async () => {
  const setup = setupOf();
  genesisWith(
    () => ({}),
    () => [],
  )(setup);
  const third = newKey();
  const environment = {
    PORT: 'not read',
    OPERATOR_PUBLIC_KEYS_JSON: JSON.stringify({ 'ops-2': KEY }),
    OPERATOR_KEY_TIERS_JSON: JSON.stringify({ 'ops-2': 'standard' }),
  };
  const key = [`ops-3=${third.publicKey}`, 'ops-3=standard'] as const;
  const args = ['--port', '0', '--allow-unsigned-genesis', '--operator-public-key', key[0]];
  const checked = await runCommand(
    ['serve', '--check', '--data-dir', setup.folder, ...args, '--operator-key-tier', key[1]],
    environment,
  );
  assert.equal(checked.code, 0, checked.stdout);
  await using na = await startTestAuthority({
    dataDir: setup.folder,
    clock: REAL_TIME,
    flags: {
      allowUnsignedGenesis: true,
      operatorPublicKey: [key[0]],
      operatorKeyTier: [key[1]],
    },
    environment,
  });
  const byThird = { operator: { keyId: 'ops-3', key: third } };
  const answers = [
    await operate(na, '/admin/invite', {}, byThird),
    await operate(na, '/admin/invite', {}, { operator: na.standard }),
    await operate(na, '/admin/operator-keys/ops-2/revoke', {}),
  ];
  assert.deepEqual(answers.map(outcome), ['200', '200', '200']);
  assert.equal(answers[2]?.body.remaining_active_keys, 3);
});

/** Exit code 3, nothing on standard output, and on standard error the cause, and the cure if there is one: no stack trace. */
function assertRefused({ code, signal, stdout, stderr }: Ended, message: RegExp): void {
  assert.deepEqual({ code, signal }, { code: START_REFUSED, signal: null }, stderr);
  assert.equal(stdout, '');
  assert.match(stderr, /^mesh-na: \S[^\n]*\n(?: {2}[A-Z][^\n]*\.\n)?$/);
  assert.match(stderr, message);
  assert.doesNotMatch(stderr, /^\s*at |node:internal|\.ts:\d/m);
}

suite('the settings can be shown without a start', () => {
  test('serve --check names every problem, ends with 3, and leaves the folder as it is', async () => {
    const setup = setupOf();
    const before = readdirSync(setup.folder);
    const args = ['serve', '--check', '--data-dir', setup.folder, '--backup-to', '/nonexistent'];
    const refused = await runCommand(args, { PORT: 'http' });
    assert.deepEqual([refused.code, refused.stderr], [START_REFUSED, '']);
    assert.deepEqual(refused.stdout.trim().split('\n'), [
      'PORT must be a whole number from 0 to 65535, not "http"',
      '--backup-to needs the folder /nonexistent, which does not exist; create it, or name another',
    ]);
    const well = ['serve', '--check', '--json', '--data-dir', setup.folder];
    const { code, stdout } = await runCommand(well);
    assert.deepEqual([code, JSON.parse(stdout).problems], [0, []]);
    assert.deepEqual(readdirSync(setup.folder), before);
  });

  test('config show says where each value comes from, and of a secret only that it is set', async () => {
    const setup = setupOf();
    setup.write('mesh-na.json', JSON.stringify({ log: { level: 'ERROR' } }));
    const { code, stdout } = await runCommand(
      ['config', 'show', '--json', '--data-dir', setup.folder, '--port', '1'],
      { HOST: '::1', MESH_WEBHOOKS: 'https://h.example/?secret' },
    );
    assert.equal(code, 0);
    assert.ok(!stdout.includes('secret'));
    const { settings, config_file } = JSON.parse(stdout) as {
      config_file: string;
      settings: { name: string; value: unknown; source: string }[];
    };
    assert.equal(config_file, setup.path('mesh-na.json'));
    const shown = (name: string) => {
      const found = settings.find((setting) => setting.name === name);
      return [found?.value, found?.source];
    };
    assert.deepEqual(shown('port'), [1, 'flag']);
    assert.deepEqual(shown('host'), ['::1', 'variable']);
    assert.deepEqual(shown('log.level'), ['ERROR', 'file']);
    assert.deepEqual(shown('threads'), [null, 'default']);
    assert.deepEqual(shown('webhook.urls'), ['set', 'variable']);
  });

  test('a misspelled variable is named with the most similar setting, and others are not', async () => {
    const args = ['serve', '--check', '--json', '--data-dir', setupOf().folder];
    const { stdout } = await runCommand(args, {
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
    });
    const { warnings } = JSON.parse(stdout) as { warnings: string[] };
    assert.deepEqual(
      warnings.filter((text) => text.startsWith('The variable ')),
      [
        'The variable MESH_LOG_LEVL is not a setting and has no effect; did you mean MESH_LOG_LEVEL?',
        'The variable MESH_PORT is not a setting and has no effect; did you mean PORT?',
        'The variable MESH_RATE_LIMIT_ADMINS is not a setting and has no effect; did you mean MESH_RATE_LIMIT_ADMIN?',
        'The variable MESH_RATE_LIMIT_ADMIN_FAILURES is not a setting and has no effect; remove it',
      ],
    );
  });
});
