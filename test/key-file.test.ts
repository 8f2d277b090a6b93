import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parseKeyText, readKeyFile, writeKeyFile } from '../src/keys/key-file.ts';
import { startTestAuthority } from './support/authority.ts';
import { makeNetworkFolder } from './support/folders.ts';

const folder = mkdtempSync(join(tmpdir(), 'mesh-keys-'));
after(() => rmSync(folder, { recursive: true }));

const key = Buffer.from(Array.from({ length: 32 }, (_, index) => index));
const base64 = key.toString('base64');
const content = { kind: 'node private key', keyId: 'n-1', key };

test('a key file is two comment lines and one base64 line, for its owner alone', () => {
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
    message: `The key file ${path} exists and is not overwritten`,
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

test('a missing key file is one clear sentence', () => {
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

test('C6: key files that the authority does not read are warned of at start when every user can open them', async () => {
  const { folder: dataDir } = makeNetworkFolder();
  const warnings = async () => {
    await using na = await startTestAuthority({ dataDir });
    return na.logLines.filter((line) => line.includes('open to every user')).length;
  };
  try {
    assert.equal(await warnings(), 0);
    chmodSync(join(dataDir, 'keys', 'root.key'), 0o644);
    chmodSync(join(dataDir, 'keys', 'operator-standard.key'), 0o640);
    assert.equal(await warnings(), 1);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
});
