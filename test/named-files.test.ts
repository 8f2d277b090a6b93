/** Files that people name: what is no file, has no end or is too long is refused, with the cause and the cure. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { MOST_BYTES } from '../src/base/byte-bounds.ts';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { openHeadFile } from '../src/server/head/open.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { startTestAuthority } from './support/authority.ts';
import { runProgramBehind } from './support/child-server.ts';
import { REAL_TIME, testClock } from './support/clock.ts';
import { endOf } from './support/failed-command.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { operate } from './support/requests.ts';
import { makeTlsPair, putInPlace } from './support/tls-files.ts';

const folder = mkdtempSync(join(tmpdir(), 'mesh-files-'));
const { folder: dataDir } = makeNetworkFolder();
after(() => {
  for (const path of [folder, dataDir]) rmSync(path, { recursive: true, force: true });
});
const pipe = join(folder, 'pipe');
execFileSync('mkfifo', [pipe]);
const long = join(folder, 'long');
writeFileSync(long, Buffer.alloc(MOST_BYTES.settings + 1, 'x'));

const NO_FILES = [
  ['/dev/zero', 'it is a device; name a file'],
  [pipe, 'it is a pipe; name a file'],
  [folder, 'EISDIR'],
] as const;

test('a TLS pair that turns into what is no file is refused at a reload, and the old one stays in use', async () => {
  const [first, second] = ['first', 'second'].map((name) => makeTlsPair(folder, name));
  assert.ok(first && second);
  const served = { certFile: join(folder, 'served.crt'), keyFile: join(folder, 'served.pem') };
  putInPlace(first, served);
  const flags = { tlsCert: served.certFile, tlsKey: served.keyFile };
  await using na = await startTestAuthority({ flags });
  for (const [place, problem] of [
    ...NO_FILES,
    [long, 'it has more than 1 MiB; name the right file'],
  ]) {
    for (const path of [served.certFile, served.keyFile]) {
      symlinkSync(String(place), join(folder, 'new'));
      renameSync(join(folder, 'new'), path);
      await na.reloadTls();
      const said = na.logLines.findLast((line) => line.includes('mesh.tls'));
      assert.ok(said?.includes(`${path} cannot be read (${problem}). The previous pair`), said);
      putInPlace(first, served);
    }
  }
  // As Kubernetes puts secrets in place: links to files in a folder that is replaced.
  for (const [path, content] of [
    [served.certFile, second.certFile],
    [served.keyFile, second.keyFile],
  ] as const) {
    symlinkSync(content, join(folder, 'new'));
    renameSync(join(folder, 'new'), path);
  }
  await na.reloadTls();
  assert.match(na.logLines.at(-1) ?? '', /New connections use the new certificate/);
});

for (const [path, problem] of NO_FILES) {
  test(`the service refuses ${path.replace(folder, '…')} wherever a file is configured`, () => {
    const now = testClock().now();
    for (const flags of [
      { config: path },
      { genesis: path },
      { naPrivateKey: path },
      { operatorPublicKey: [`ops-9=${path}`] },
      { tlsCert: path, tlsKey: path },
    ]) {
      const problems = (cause: Error) => cause.message.includes(`cannot be read (${problem})`);
      assert.throws(() => loadConfig({ dataDir, ...flags }, {}, now), problems, String(flags));
    }
    assert.throws(
      () => parseStoreAddress(`postgresql://a@b/c?sslmode=require&sslrootcert=${path}`, {}),
      {
        message: `The URL of the store cannot be used: the file ${path} cannot be read (${problem})`,
      },
    );
    const head = join(mkdtempSync(join(folder, 'head-')), 'head');
    symlinkSync(path, head);
    assert.throws(
      () => openHeadFile(head),
      (cause: Error) => cause.message.includes(problem),
    );
  });
}

test('a command refuses a folder, and an argument without an end once it is too long', async () => {
  const url = ['--url', 'http://127.0.0.1:9'];
  for (const [args, most] of [
    [['treaty', 'verify', '/dev/zero', ...url], '16 MiB'],
    [['feed', 'import', '/dev/zero', ...url, '--data-dir', dataDir], '256 MiB'],
    [
      [
        'operator-key',
        'list',
        ...url,
        '--data-dir',
        dataDir,
        '--key-id',
        'a',
        '--key-file',
        '/dev/zero',
      ],
      '64 KiB',
    ],
    [['policy', 'show', ...url, '--ca', '/dev/zero'], '1 MiB'],
    [['node', 'join', ...url, '--node-dir', folder, '--token-file', '/dev/zero'], '64 KiB'],
  ] as const) {
    const { exit, message } = await endOf(args);
    assert.equal(exit, EXIT.unusable, message);
    assert.ok(message.includes(`it has more than ${most}; name the right file`), message);
    const given = args.map((arg) => (arg === '/dev/zero' ? folder : arg));
    const refused = await endOf(given);
    assert.match(`${refused.message} ${refused.cure}`, /EISDIR/);
  }
});

test('a command reads a pipe of the shell, and standard input by its path and by a dash', async () => {
  await using na = await startTestAuthority({ clock: REAL_TIME });
  const body = { subject_sovereign_id: 'beta', subject_public_keys: [na.audience] };
  const { body: treaty } = await operate(na, '/admin/recognition-treaties', body);
  const [record, key] = [
    join(folder, 'treaty.json'),
    join(na.dataDir, 'keys', 'operator-privileged.key'),
  ];
  writeFileSync(record, JSON.stringify(treaty));
  const environment = { MESH_URL: na.url, MESH_DATA_DIR: na.dataDir };
  const list = ['operator-key', 'list', '--key-id', 'ops-privileged', '--key-file'];
  const ended = await Promise.all(
    (
      [
        [['treaty', 'verify'], '<(cat "$FILE")', record],
        [['treaty', 'verify'], '/dev/stdin < <(cat "$FILE")', record],
        [['treaty', 'verify'], '- < "$FILE"', record],
        [list, '<(cat "$FILE")', key],
      ] as const
    ).map(([args, words, FILE]) => {
      const shell = ['bash', '-c', `exec "$0" "$@" ${words}`];
      return runProgramBehind(shell, args, { ...environment, FILE });
    }),
  );
  for (const { code, stderr } of ended) assert.deepEqual([code, stderr], [EXIT.done, '']);
});
