/** `operator-key create`: a key pair in two files, for an operator added after the first ones. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { runCommand } from './support/commands.ts';

const USAGE = 2;
const UNUSABLE = 3;

const folder = mkdtempSync(join(tmpdir(), 'mesh-operator-key-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const create = (...args: string[]) =>
  runCommand(['operator-key', 'create', '--key-dir', folder, ...args]);

test('both files contain their half of the key, and only their owner can read them', async () => {
  const { code, stdout, stderr } = await create('ops-2', '--json');
  assert.equal(code, 0, stderr);
  const made = JSON.parse(stdout);
  assert.deepEqual([made.key_id, Object.keys(made).length], ['ops-2', 4]);
  assert.equal(signerFromSeed(readKeyFile(made.key_file)).publicKey, made.public_key);
  assert.equal(readKeyFile(made.public_key_file).toString('base64'), made.public_key);
  assert.equal(made.key_file, join(folder, 'ops-2.key'));
  assert.equal(statSync(made.key_file).mode & 0o777, 0o600);
});

test('an existing key is not replaced', async () => {
  assert.equal((await create('ops-3')).code, 0);
  const before = readFileSync(join(folder, 'ops-3.key'), 'utf8');
  const { code, stderr } = await create('ops-3');
  assert.equal(code, UNUSABLE);
  assert.match(stderr, /ops-3\.key already exists and is not overwritten/);
  assert.equal(readFileSync(join(folder, 'ops-3.key'), 'utf8'), before);
});

for (const keyId of ['', '../ops', 'a/b', '.hidden', '-ops', 'two words']) {
  test(`the key id ${JSON.stringify(keyId)} is refused as a file name`, async () => {
    const before = readdirSync(folder);
    const { code } = await create('--', keyId);
    assert.equal(code, USAGE);
    assert.deepEqual(readdirSync(folder), before);
  });
}
