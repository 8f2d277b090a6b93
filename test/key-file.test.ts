import assert from 'node:assert/strict';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { parseKeyText, readKeyFile, writeKeyFile } from '../src/base/keys/key-file.ts';
import { blobOfKey, publicKeyOf, readPublicKey } from '../src/base/keys/read-key.ts';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { startTestAuthority } from './support/authority.ts';
import { endOf } from './support/failed-command.ts';
import { ownFolder, ownNetwork } from './support/folders.ts';

const folder = ownFolder();

const key = Buffer.from(Array.from({ length: 32 }, (_, index) => index));
const base64 = key.toString('base64');
const content = { kind: 'node private key', keyId: 'n-1', key };

test('a key file is two comment lines and one base64 line, readable only by its owner', () => {
  const path = join(folder, 'made.key');
  writeKeyFile(path, content);
  assert.equal(readFileSync(path, 'utf8'), `# node private key\n# key id: n-1\n${base64}\n`);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readKeyFile(path), key);
});

test('an existing key file is never replaced', () => {
  const path = join(folder, 'kept.key');
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
    const path = join(folder, `${fault}.key`);
    writeFileSync(path, text);
    assert.throws(() => readKeyFile(path), {
      message: `The key file ${path} does not hold the canonical base64 of 32 bytes`,
    });
  });
}

test('a missing key file is reported in one clear sentence', () => {
  const path = join(folder, 'missing.key');
  assert.throws(() => readKeyFile(path), {
    message: `The key file ${path} cannot be read (ENOENT)`,
  });
});

for (const [fault, wrong] of [
  ['a short key', { key: key.subarray(1) }],
  ['a key id of two lines', { keyId: `a\n${base64}` }],
] as const) {
  test(`${fault} is not written`, () => {
    const path = join(folder, 'unwritten.key');
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
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};
writeKeyFile(join(folder, 'ops-2.key'), {
  kind: 'operator private key',
  keyId: 'ops-2',
  key: Buffer.from(made.seed, 'base64'),
});
writeKeyFile(join(folder, 'ops-2.pub'), {
  kind: 'operator public key',
  keyId: 'ops-2',
  key: Buffer.from(made.publicKey, 'base64'),
});
const PRIVATE = join(folder, 'ops-2.key');
const PUBLIC = join(folder, 'ops-2.pub');
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
  ...['--config-home', folder],
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
    ...['--node-dir', join(folder, 'node')],
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
