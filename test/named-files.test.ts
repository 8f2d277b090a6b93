/** Files that people name, keys among them: what does not fit is refused, with the cause and the cure. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { MOST_BYTES } from '../src/base/byte-bounds.ts';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { parseKeyText, readKeyFile, writeKeyFile } from '../src/base/keys/key-file.ts';
import { blobOfKey, publicKeyOf, readPublicKey } from '../src/base/keys/read-key.ts';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { openHeadFile } from '../src/server/head/open.ts';
import { parseStoreAddress } from '../src/store/postgresql/address.ts';
import { startTestAuthority } from './support/authority.ts';
import { runProgramBehind } from './support/child-server.ts';
import { REAL_TIME, testClock } from './support/clock.ts';
import { endOf } from './support/failed-command.ts';
import { makeNetworkFolder, ownFolder, ownNetwork } from './support/folders.ts';
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

const keys = ownFolder();

const key = Buffer.from(Array.from({ length: 32 }, (_, index) => index));
const base64 = key.toString('base64');
const content = { kind: 'node private key', keyId: 'n-1', key };

test('a key file is two comment lines and one base64 line, readable only by its owner', () => {
  const path = join(keys, 'made.key');
  writeKeyFile(path, content);
  assert.equal(readFileSync(path, 'utf8'), `# node private key\n# key id: n-1\n${base64}\n`);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readKeyFile(path), key);
});

test('an existing key file is never replaced', () => {
  const path = join(keys, 'kept.key');
  writeFileSync(path, 'kept');
  assert.throws(() => writeKeyFile(path, content), {
    message: `The key file ${path} already exists and is not overwritten`,
  });
  assert.equal(readFileSync(path, 'utf8'), 'kept');
});

for (const [shape, text] of [
  ['bare base64', base64],
  ['comments before and after', `# kind\n# id\n${base64}\n# end\n`],
  ['blanks and Windows line ends', `\r\n#x\r\n  ${base64}  \r\n\r\n`],
  ['base64 broken into lines', `${base64.slice(0, 20)}\n# between\n${base64.slice(20)}\n`],
] as const) {
  test(`key text with ${shape} is read`, () => assert.deepEqual(parseKeyText(text), key));
}

for (const [fault, text] of [
  ['nothing but comments', '# only\n'],
  ['31 bytes', key.subarray(1).toString('base64')],
  ['33 bytes', Buffer.concat([key, key.subarray(0, 1)]).toString('base64')],
  ['no padding', base64.slice(0, -1)],
  ['a second spelling of the same bytes', `${base64.slice(0, -2)}9=`],
  ['the URL alphabet', Buffer.alloc(32, 0xff).toString('base64url').padEnd(44, '=')],
  ['two keys', `${base64}\n${base64}\n`],
] as const) {
  test(`a key file with ${fault} is refused without repeating it`, () => {
    const path = join(keys, `${fault}.key`);
    writeFileSync(path, text);
    assert.throws(() => readKeyFile(path), {
      message: `The key file ${path} does not hold the canonical base64 of 32 bytes`,
    });
  });
}

test('a missing key file is reported in one clear sentence', () => {
  const path = join(keys, 'missing.key');
  assert.throws(() => readKeyFile(path), {
    message: `The key file ${path} cannot be read (ENOENT)`,
  });
});

for (const [fault, wrong] of [
  ['a short key', { key: key.subarray(1) }],
  ['a key id of two lines', { keyId: `a\n${base64}` }],
] as const) {
  test(`${fault} is not written`, () => {
    const path = join(keys, 'unwritten.key');
    assert.throws(() => writeKeyFile(path, { ...content, ...wrong }), /^Error: A key/);
    assert.throws(() => statSync(path));
  });
}

test('the start warns of key files that every user can read but the authority does not need', async () => {
  const dataDir = ownNetwork();
  const warnings = async () => {
    await using na = await startTestAuthority({ dataDir });
    return na.logLines.filter((line) => line.includes('can be opened by every user')).length;
  };
  assert.equal(await warnings(), 0);
  chmodSync(join(dataDir, 'keys', 'root.key'), 0o644);
  chmodSync(join(dataDir, 'keys', 'operator-standard.key'), 0o640);
  assert.equal(await warnings(), 1);
});

const made = {
  seed: Buffer.alloc(32, 5).toString('base64'),
  publicKey: signerFromSeed(Buffer.alloc(32, 5)).publicKey,
};
const bare = (name: string, text: string) => {
  const path = join(keys, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};
writeKeyFile(join(keys, 'ops-2.key'), {
  kind: 'operator private key',
  keyId: 'ops-2',
  key: Buffer.from(made.seed, 'base64'),
});
writeKeyFile(join(keys, 'ops-2.pub'), {
  kind: 'operator public key',
  keyId: 'ops-2',
  key: Buffer.from(made.publicKey, 'base64'),
});
const PRIVATE = join(keys, 'ops-2.key');
const PUBLIC = join(keys, 'ops-2.pub');
const PEM = '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAAA\n-----END PRIVATE KEY-----';

for (const [what, path] of [
  ['that says so', PRIVATE],
  ['whose name alone says so', bare('bare.key', made.seed)],
  ['that lies next to its public half', bare('ops-2.txt', made.seed)],
  ['in PEM form', bare('some.pem', PEM)],
] as const) {
  test(`a private key file ${what} is refused where a public key is expected`, () => {
    assert.throws(
      () => readPublicKey(path),
      ({ message }: Error) =>
        /holds a private key, and a public one is expected: name .*\.pub/.test(message) &&
        !message.includes(made.seed),
    );
  });
}

test('a public key is read from our own files, those of OpenSSH, and under any name', () => {
  const blob = blobOfKey(Buffer.from(made.publicKey, 'base64')).toString('base64');
  for (const path of [
    PUBLIC,
    bare('id.pub', `ssh-ed25519 ${blob} someone`),
    bare('named', made.publicKey),
    bare('said.key', readFileSync(PUBLIC, 'utf8')),
  ]) {
    assert.equal(readPublicKey(path).toString('base64'), made.publicKey);
  }
});

test('the public key of a seed is that of the signer', () => {
  assert.equal(publicKeyOf(Buffer.from(made.seed, 'base64')), made.publicKey);
});

/** Nothing listens there, so a command that contacts an authority would fail as unreachable. */
const URL = 'http://127.0.0.1:9';
const network = ownNetwork();
const OPERATOR = ['--url', URL, '--data-dir', network];

const RENEW = ['genesis', 'renew', '--genesis', join(network, 'genesis.json'), '--root-key'];
const connecting = (authorityKey: string, keyFile: string) => [
  ...['connect', URL, '--authority-key', authorityKey, '--key-file', keyFile],
  ...['--config-home', keys],
];
const adding = (...key: string[]) => [
  ...['operator-key', 'add', 'ops-3', ...key, '--tier', 'standard', ...OPERATOR],
];
const BARE_ROOT = readKeyFile(join(network, 'keys', 'root.pub')).toString('base64');

for (const [title, args] of Object.entries({
  'operator-key add --public-key-file': adding('--public-key-file', PRIVATE),
  'operator-key add --public-key': adding('--public-key', PEM),
  'treaty issue --key': ['treaty', 'issue', 'beta', '--key', PRIVATE, ...OPERATOR],
  'treaty verify --issuer-key': ['treaty', 'verify', PUBLIC, '--issuer-key', PRIVATE, '--url', URL],
  'attestation issue --subject-key': [
    ...['attestation', 'issue', 'x', '--role', 'role:a', '--subject-key', PRIVATE, ...OPERATOR],
  ],
  'invite create --recipient': [
    ...['invite', 'create', '--recipient', readFileSync(PRIVATE, 'utf8'), ...OPERATOR],
  ],
  'consensus verify --validator-key': [
    ...['consensus', 'verify', PUBLIC, '--validator-key', `a=${PRIVATE}`, '--url', URL],
  ],
  'connect --authority-key, as a file': connecting(PRIVATE, PRIVATE),
  'connect --authority-key, that of the operator': connecting(made.seed, PRIVATE),
  'node join --root-key': [
    ...['node', 'join', '--root-key', PRIVATE, '--token', 'abc', '--url', URL],
    ...['--node-dir', join(keys, 'node')],
  ],
  'connect --key-file, a public one': connecting(made.publicKey, PUBLIC),
  'an operator’s --key-file, a public one': ['node', 'list', '--key-file', PUBLIC, ...OPERATOR],
  'genesis renew --root-key, a public one': [...RENEW, join(network, 'keys', 'root.pub')],
  'genesis renew --root-key, a public one that does not say so': [
    ...RENEW,
    bare('root', BARE_ROOT),
  ],
})) {
  test(`${title}: the wrong half of a key is refused before anything is sent`, async () => {
    const { exit, message } = await endOf(args);
    assert.ok(exit === EXIT.usage || exit === EXIT.unusable, `${exit}: ${message}`);
    assert.match(message, /(?:private|public) (?:root )?key|holds a (?:private|public)/);
    assert.match(message, /give|name/);
    assert.equal(message.includes(made.seed), false);
  });
}
