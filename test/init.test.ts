import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type InitSummary, initNetwork } from '../src/cli/init-network.ts';
import { signerFromSeed, verifySignature } from '../src/crypto/ed25519.ts';
import { readKeyFile } from '../src/keys/key-file.ts';
import { isSignedByRoot, readGenesisBlock } from '../src/records/genesis.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'mesh-init-'));
after(() => rmSync(scratch, { recursive: true }));

const KEY_NAMES = ['na', 'operator-privileged', 'operator-standard', 'root'];
const KEY_FILES = KEY_NAMES.flatMap((name) => [`${name}.key`, `${name}.pub`]);

test('init makes all files of a network, private where they must be', () => {
  const dataDir = join(scratch, 'deep', 'fresh');
  makeNetwork(dataDir);
  assert.deepEqual(readdirSync(dataDir).sort(), ['genesis.json', 'keys', 'mesh-na.json']);
  assert.deepEqual(readdirSync(join(dataDir, 'keys')).sort(), KEY_FILES);
  assert.equal(modeOf(dataDir), 0o700);
  assert.equal(modeOf(join(dataDir, 'keys')), 0o700);
  for (const file of KEY_FILES) assert.equal(modeOf(join(dataDir, 'keys', file)), 0o600, file);
  assert.deepEqual(readdirSync(join(scratch, 'deep')), ['fresh'], 'nothing temporary stays');
});

test('the genesis is normalised, signed by the root and names the authority for 90 days', () => {
  const dataDir = join(scratch, 'genesis');
  const summary = makeNetwork(dataDir);
  const stored = readJson(summary.genesis_file);
  const genesis = readGenesisBlock(stored);
  assert.ok(genesis !== null);
  assert.deepEqual(genesis, stored);
  assert.equal(isSignedByRoot(genesis, verifySignature), true);
  assert.equal(genesis.root_public_key, summary.root_public_key);
  assert.deepEqual(genesis.network_authority, {
    public_key: summary.na_public_key,
    valid_from: '2026-03-01T10:00:00.250000Z',
    valid_to: '2026-05-30T10:00:00.250000Z',
  });
  assert.deepEqual(genesis.policy_manifest, { hash: 'sha256:placeholder', url: null });
});

test('every private key file belongs to its public one, and the configuration names the operators', () => {
  const dataDir = join(scratch, 'keys');
  const { operators } = makeNetwork(dataDir);
  for (const name of KEY_NAMES) {
    const seed = readKeyFile(join(dataDir, 'keys', `${name}.key`));
    const publicKey = readKeyFile(join(dataDir, 'keys', `${name}.pub`));
    assert.equal(signerFromSeed(seed).publicKey, publicKey.toString('base64'), name);
  }
  assert.deepEqual(readJson(join(dataDir, 'mesh-na.json')), {
    network_name: 'alpha',
    operators: operators.map(({ key_id, tier, public_key }) => ({ key_id, tier, public_key })),
    admin_signature_v1: 'refuse',
  });
  assert.deepEqual(
    operators.map(({ key_id, tier, key_file }) => ({ key_id, tier, key_file })),
    [
      {
        key_id: 'ops-privileged',
        tier: 'privileged',
        key_file: join(dataDir, 'keys', 'operator-privileged.key'),
      },
      {
        key_id: 'ops-standard',
        tier: 'standard',
        key_file: join(dataDir, 'keys', 'operator-standard.key'),
      },
    ],
  );
});

test('an existing folder is used and what is in it stays', () => {
  const dataDir = join(scratch, 'existing');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'notes.txt'), 'mine');
  makeNetwork(dataDir);
  assert.deepEqual(readdirSync(dataDir).sort(), [
    'genesis.json',
    'keys',
    'mesh-na.json',
    'notes.txt',
  ]);
});

for (const entry of ['genesis.json', 'mesh-na.json', 'keys']) {
  test(`a folder that holds ${entry} is refused and nothing is written`, () => {
    const dataDir = join(scratch, `holds-${entry}`);
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, entry), 'kept');
    assert.throws(() => makeNetwork(dataDir), {
      message: `${join(dataDir, entry)} exists, so nothing was written`,
    });
    assert.deepEqual(readdirSync(dataDir), [entry]);
    assert.equal(readFileSync(join(dataDir, entry), 'utf8'), 'kept');
  });
}

test('an empty network name is refused and leaves no folder behind', () => {
  const parent = join(scratch, 'nameless');
  assert.throws(() => makeNetwork(join(parent, 'data'), ''), /network name must not be empty/);
  assert.deepEqual(readdirSync(parent), []);
});

test('mesh-na init --json prints one object, and a second run ends with 3 and one error object', () => {
  const dataDir = join(scratch, 'cli');
  const args = ['init', '--data-dir', dataDir, '--network-name', 'beta', '--json'];
  const first = runCli(args);
  assert.equal(first.status, 0, first.stderr);
  assert.equal(first.stderr, '');
  const summary = JSON.parse(first.stdout) as InitSummary;
  assert.deepEqual(Object.keys(summary), [
    'network_name',
    'na_public_key',
    'root_public_key',
    'genesis_file',
    'operators',
  ]);
  assert.equal(summary.network_name, 'beta');
  assert.equal(summary.operators.length, 2);

  const second = runCli(args);
  assert.equal(second.status, 3);
  assert.equal(second.stdout, '');
  const message = `${join(dataDir, 'keys')} exists, so nothing was written`;
  assert.deepEqual(JSON.parse(second.stderr), { error: { code: 'local_files', message } });
});

test('mesh-na init tells people what was made and never prints a private key', () => {
  const dataDir = join(scratch, 'people');
  const { status, stdout, stderr } = runCli(['init', '--data-dir', dataDir]);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^Network "local-mesh" is made\.$/m);
  assert.match(stdout, /mesh-na serve --data-dir /);
  for (const name of KEY_NAMES) {
    const seed = readKeyFile(join(dataDir, 'keys', `${name}.key`)).toString('base64');
    assert.equal(stdout.includes(seed), false, name);
  }
});

for (const [fault, args, expected] of [
  ['an unknown option', ['init', '--nope'], /^mesh-na: unknown option '--nope'\n$/],
  ['an unknown command', ['bogus'], /^mesh-na: unknown command 'bogus'\n$/],
  ['a url that is none', ['nodes', '--url', 'nope'], /must be an http or https URL\.\n$/],
  ['a count of zero', ['invite', '--count', '0'], /must be a whole number, 1 or more\.\n$/],
  ['an unknown reason', ['revoke', 'c', '--reason', 'x'], /Allowed choices are .*\n$/],
  ['no invite token', ['node', 'join'], /^mesh-na: Give the invite token by .*\n$/],
] as const) {
  test(`${fault} ends with 2 and one sentence`, () => {
    const { status, stdout, stderr } = runCli(args);
    assert.equal(status, 2);
    assert.equal(stdout, '');
    assert.match(stderr, expected);
    assert.equal(stderr.split('\n').length, 2);
  });
}

test('a missing operator key ends with 3, an absent authority with 5', () => {
  const dataDir = join(scratch, 'absent');
  const nodes = ['nodes', '--data-dir', dataDir, '--url', 'http://127.0.0.1:1', '--json'];
  const unusable = runCli(nodes);
  assert.equal(unusable.status, 3);
  assert.match(unusable.stderr, /"code":"local_files".*operator-privileged\.key cannot be read/);

  makeNetwork(dataDir);
  const unreachable = runCli(nodes);
  assert.equal(unreachable.status, 5);
  assert.equal(unreachable.stdout, '');
  assert.match(unreachable.stderr, /^\{"error":\{"code":"unreachable","message":"No answer/);
});

test('the help of the program lists the exit codes', () => {
  const { status, stdout } = runCli(['--help']);
  assert.equal(status, 0);
  for (const code of [0, 1, 2, 3, 4, 5]) assert.match(stdout, new RegExp(`^  ${code}  \\w`, 'm'));
});

function makeNetwork(dataDir: string, networkName = 'alpha'): InitSummary {
  let seeds = 0;
  return initNetwork({
    dataDir,
    networkName,
    networkVersion: 'v0.1',
    now: Date.parse('2026-03-01T10:00:00.250Z'),
    randomSeed: () => {
      seeds += 1;
      return Buffer.alloc(32, seeds);
    },
  });
}

function runCli(args: readonly string[]) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('MESH_')),
  );
  return spawnSync(process.execPath, ['--import', 'tsx', 'src/main.ts', ...args], {
    cwd: root,
    env,
    encoding: 'utf8',
  });
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'));
}
