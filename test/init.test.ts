/** The folder of a new network, and the delegation of its root key, which is extended offline. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { sha256Hex } from '../src/base/crypto/digest.ts';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import {
  finishInterruptedInit,
  type InitSummary,
  initNetwork,
} from '../src/cli/service/init-network.ts';
import { genesisProblem } from '../src/client/network-trust.ts';
import {
  type GenesisBlock,
  isSignedByRoot,
  readGenesisBlock,
} from '../src/protocol/records/genesis.ts';
import { signRecord, soleSigner } from '../src/protocol/records/signed-record.ts';
import { startTestAuthority } from './support/authority.ts';
import { runCommand } from './support/commands.ts';
import { makeNetworkFolder, ownFolder } from './support/folders.ts';
import { spawnNode } from './support/processes.ts';
import { LOADER, modulePath } from './support/project.ts';
import { get, invite, joinedNode, newKey } from './support/requests.ts';

const scratch = ownFolder();

const KEY_NAMES = ['na', 'operator-privileged', 'operator-standard', 'root'];
/** The contents of the folder of a new network. */
const NETWORK = ['genesis.json', 'keys', 'mesh-na.json', 'mesh-na.lock'];
const KEY_FILES = KEY_NAMES.flatMap((name) => [`${name}.key`, `${name}.pub`]);

test('init creates all files of a network, and the private ones are private', () => {
  const dataDir = join(scratch, 'deep', 'fresh');
  makeNetwork(dataDir);
  assert.deepEqual(readdirSync(dataDir).sort(), NETWORK);
  assert.deepEqual(readdirSync(join(dataDir, 'keys')).sort(), KEY_FILES);
  assert.equal(modeOf(dataDir), 0o700);
  assert.equal(modeOf(join(dataDir, 'keys')), 0o700);
  for (const file of KEY_FILES) assert.equal(modeOf(join(dataDir, 'keys', file)), 0o600, file);
  assert.deepEqual(readdirSync(join(scratch, 'deep')), ['fresh'], 'nothing temporary stays');
});

test('the genesis is normalized, signed by the root and names the authority for 90 days', () => {
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
  const { network_authority, network_name, network_version } = genesis;
  const policy = {
    allowed_ports: [443, 8443],
    allowed_services: [],
    issued_at: network_authority.valid_from,
    issued_by: network_authority.public_key,
    min_client_version: '0.1.0',
    policy_id: `policy-${network_name}-${network_version}`,
    routing: { max_hops: 6, preferred_transports: ['quic', 'wireguard'] },
  };
  const hash = `sha256:${sha256Hex(canonicalJson(policy))}`;
  assert.deepEqual(genesis.policy_manifest, { hash, url: null });
});

test('every private key file matches its public one, and the configuration names the operators', () => {
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

test('an existing folder is used and its contents stay', () => {
  const dataDir = join(scratch, 'existing');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'notes.txt'), 'mine');
  makeNetwork(dataDir);
  assert.deepEqual(readdirSync(dataDir).sort(), [...NETWORK, 'notes.txt']);
});

for (const entry of [
  'genesis.json',
  'mesh-na.json',
  'keys',
  'state',
  'mesh-na.state.json',
  '.arriving',
  'root.key',
  'na.pub',
]) {
  test(`a folder that contains ${entry} is refused and nothing is written`, () => {
    const dataDir = join(scratch, `holds-${entry}`);
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, entry), 'kept');
    assert.throws(
      () => makeNetwork(dataDir),
      ({ message }: Error) =>
        message.startsWith(
          `${join(dataDir, entry)} belongs to an existing network, so nothing was `,
        ),
    );
    assert.deepEqual(readdirSync(dataDir), [entry]);
    assert.equal(readFileSync(join(dataDir, entry), 'utf8'), 'kept');
  });
}

/** Each one requires starting a process. */
const KILLS = Number(process.env.MESH_TEST_KILLS ?? 4);
/** The entries of the staging folder, in the order in which they are moved out of it. */
const MOVED = ['keys', 'mesh-na.json', 'genesis.json'];

for (const moved of [0, 1, 2]) {
  test(`an init killed after ${moved} of its entries were moved is finished by the next one`, () => {
    const dataDir = join(scratch, `killed-${moved}`);
    const summary = makeNetwork(dataDir);
    mkdirSync(join(dataDir, '.init'));
    for (const name of MOVED.slice(moved)) {
      renameSync(join(dataDir, name), join(dataDir, '.init', name));
    }
    assert.deepEqual(makeNetwork(dataDir), summary, 'the network that was built');
    assert.deepEqual(readdirSync(dataDir).sort(), NETWORK);
  });

  test(`an init killed after ${moved} of its entries were moved is finished by the next start`, () => {
    const dataDir = join(scratch, `started-${moved}`);
    makeNetwork(dataDir);
    mkdirSync(join(dataDir, '.init'));
    for (const name of MOVED.slice(moved)) {
      renameSync(join(dataDir, name), join(dataDir, '.init', name));
    }
    finishInterruptedInit(dataDir);
    assert.deepEqual(readdirSync(dataDir).sort(), NETWORK);
    assert.ok(isSignedByRoot(genesisIn(dataDir), verifySignature));
  });
}

test('a network that an init left under another name is put into place, and the init is refused', () => {
  const dataDir = join(scratch, 'killed-other');
  makeNetwork(dataDir);
  mkdirSync(join(dataDir, '.init'));
  for (const name of MOVED) renameSync(join(dataDir, name), join(dataDir, '.init', name));
  assert.throws(
    () => makeNetwork(dataDir, 'another'),
    /belongs to an existing network, so nothing was written/,
  );
  assert.equal(genesisIn(dataDir).network_name, 'alpha');
});

test('files in the place of staged ones are never replaced', () => {
  const dataDir = join(scratch, 'killed-and-used');
  makeNetwork(dataDir);
  mkdirSync(join(dataDir, '.init'));
  renameSync(join(dataDir, 'genesis.json'), join(dataDir, '.init', 'genesis.json'));
  writeFileSync(join(dataDir, '.init', 'mesh-na.json'), '{}');
  const before = readFileSync(join(dataDir, 'mesh-na.json'), 'utf8');
  assert.throws(() => makeNetwork(dataDir), /mesh-na\.json exists, so nothing was moved there$/);
  assert.equal(readFileSync(join(dataDir, 'mesh-na.json'), 'utf8'), before);
});

test('wherever an init is killed, the next one leaves a complete network and no other keys', async () => {
  for (const dataDir of await killedInits(KILLS)) {
    const leftGenesis = existsSync(join(dataDir, 'genesis.json'));
    if (leftGenesis) finishInterruptedInit(dataDir);
    else makeNetwork(dataDir);
    assert.deepEqual(readdirSync(dataDir).sort(), NETWORK);
    assert.deepEqual(readdirSync(join(dataDir, 'keys')).sort(), KEY_FILES);
    assert.ok(isSignedByRoot(genesisIn(dataDir), verifySignature));
  }
});

for (const [what, name, refused] of [
  ['that is empty', '', /network name must not be empty; choose/],
  ['with a line feed', 'alpha\nbeta', /"alpha\\nbeta" contains a line feed .*; choose/],
  ['that ends with a line feed', 'alpha\n', /control character, .*; choose/],
  ['with a tab', 'alpha\tbeta', /control character, .*; choose/],
  ['with NEL', 'alpha\u0085', /control character, .*; choose/],
  ['of 1,025 characters', 'a'.repeat(1025), /has 1025 characters, .* more than 1024; choose/],
  ['of 513 pairs of surrogates', '\u{1f680}'.repeat(513), /has 1026 characters/],
  ['of 1,797 bytes', `a${'\u00e4'.repeat(898)}`, /name and the version .* 1801 bytes.*; choose/],
] as const) {
  test(`a network name ${what} is refused and leaves no folder behind`, () => {
    const parent = join(scratch, `nameless ${what}`);
    mkdirSync(parent);
    assert.throws(() => makeNetwork(join(parent, 'data'), name), refused);
    assert.deepEqual(readdirSync(parent), []);
  });
}

for (const name of ['a'.repeat(1024), 'Zürich 1', 'net.example']) {
  test(`a network can be named ${name.slice(0, 12)}, of ${name.length} characters`, () => {
    const dataDir = join(scratch, `named ${name.length}`);
    makeNetwork(dataDir, name);
    assert.equal(genesisIn(dataDir).network_name, name);
  });
}

test('mesh-na init --json prints one object, and a second run ends with 3 and one error object', async () => {
  const dataDir = join(scratch, 'cli');
  const args = ['init', '--data-dir', dataDir, '--network-name', 'beta', '--json'];
  const first = await runCommand(args);
  assert.equal(first.code, 0, first.stderr);
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

  const second = await runCommand(args);
  assert.equal(second.code, 3);
  assert.equal(second.stdout, '');
  const message = `${join(dataDir, 'keys')} belongs to an existing network, so nothing was written: serve that network with its own genesis and keys, or choose another folder with --data-dir`;
  assert.deepEqual(JSON.parse(second.stderr), { error: { code: 'local_files', message } });
});

test('mesh-na init reports what it created and never prints a private key', async () => {
  const dataDir = join(scratch, 'people');
  const { code, stdout, stderr } = await runCommand(['init', '--data-dir', dataDir]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^Network "local-mesh" created\.$/m);
  assert.match(stdout, /mesh-na serve --data-dir /);
  for (const name of KEY_NAMES) {
    const seed = readKeyFile(join(dataDir, 'keys', `${name}.key`)).toString('base64');
    assert.equal(stdout.includes(seed), false, name);
  }
});

test('a missing operator key ends with 3, an unreachable authority with 5', async () => {
  const dataDir = join(scratch, 'absent');
  const nodes = ['node', 'list', '--data-dir', dataDir, '--url', 'http://127.0.0.1:1', '--json'];
  const unusable = await runCommand(nodes);
  assert.equal(unusable.code, 3);
  assert.match(
    unusable.stderr,
    /"code":"local_files".*genesis\.json does not exist, so the authority key is not known; give the --data-dir .*, or run mesh-na connect/,
  );

  makeNetwork(dataDir);
  const unreachable = await runCommand(nodes);
  assert.equal(unreachable.code, 5);
  assert.equal(unreachable.stdout, '');
  assert.match(unreachable.stderr, /^\{"error":\{"code":"unreachable","message":"No answer/);
});

test('the help of the program lists the exit codes', async () => {
  const { code, stdout } = await runCommand(['--help']);
  assert.equal(code, 0);
  for (const exit of [0, 1, 2, 3, 4, 5]) assert.match(stdout, new RegExp(`^  ${exit}  \\w`, 'm'));
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

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'));
}

function genesisIn(dataDir: string) {
  const genesis = readGenesisBlock(readJson(join(dataDir, 'genesis.json')));
  assert.ok(genesis !== null);
  return genesis;
}

/**
 * Folders whose init was killed. A child creates one network after another and is killed at a random time, so that most
 * kills interrupt an init.
 */
async function killedInits(count: number): Promise<string[]> {
  const script = `
    import { randomBytes } from 'node:crypto';
    import { initNetwork } from '${pathToFileURL(modulePath('src/cli/service/init-network.ts'))}';
    for (let i = 0; ; i += 1) {
      process.stdout.write(i + '\\n');
      initNetwork({
        dataDir: process.argv[1] + '-' + i,
        networkName: 'alpha',
        networkVersion: 'v0.1',
        now: Date.now(),
        randomSeed: () => randomBytes(32),
      });
    }
  `;
  const args = [...LOADER, '--input-type=module', '--eval', script];
  const folders: string[] = [];
  for (let round = 0; round < count; round += 1) {
    const prefix = join(scratch, `random-${round}`);
    const child = spawnNode([...args, prefix], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    assert.ok(child.stdout !== null);
    const exited = once(child, 'exit');
    await once(child.stdout, 'data');
    await setTimeout(Math.random() * 20);
    child.kill('SIGKILL');
    await exited;
    const made = readdirSync(scratch).filter((name) => name.startsWith(`random-${round}-`));
    const last = Math.max(...made.map((name) => Number(name.split('-').at(-1))));
    folders.push(`${prefix}-${last}`);
  }
  return folders;
}

// The delegation of the root key is extended offline, and served after the next start.

test('mesh-na genesis renew extends the delegation, with the root key alone', async (t) => {
  const { folder } = makeNetworkFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'genesis.json');
  const read = () => readGenesisBlock(JSON.parse(readFileSync(file, 'utf8')));
  const before = read();
  {
    await using na = await startTestAuthority({ dataDir: folder });
    await joinedNode(na);
  }
  const renew = (key: string, ...more: string[]) => {
    const rootKey = ['--root-key', join(folder, 'keys', `${key}.key`)];
    return runCommand(['genesis', 'renew', ...rootKey, '--genesis', file, '--json', ...more]);
  };

  const wrong = await renew('na');
  assert.equal(wrong.code, 3);
  assert.match(wrong.stderr, /is not the root key/);
  assert.deepEqual(read(), before);

  const done = await renew('root', '--days', '400');
  assert.equal(done.code, 0, done.stderr);
  const renewed = read();
  assert.ok(before !== null && renewed !== null && isSignedByRoot(renewed, verifySignature));
  const { valid_to } = renewed.network_authority;
  assert.ok(Date.parse(valid_to) > Date.now() + 399 * 86_400_000);
  const changed = { ...before, signatures: renewed.signatures };
  assert.deepEqual(renewed, {
    ...changed,
    network_authority: { ...before.network_authority, valid_to },
  });

  const shorter = await renew('root', '--days', '30');
  assert.equal(shorter.code, 3);
  assert.match(shorter.stderr, /lasts until/);

  await using na = await startTestAuthority({ dataDir: folder });
  assert.equal((await get(na, '/genesis')).body.network_authority.valid_to, valid_to);
  assert.match(await invite(na), /^[0-9a-f]{48}$/);
});

test('a node accepts an extended delegation, but not a shorter one or one by another key', () => {
  const root = newKey();
  const genesisUntil = (end: string, key = 'A'.repeat(43)) => {
    const genesis = readGenesisBlock({
      network_name: 'alpha',
      network_version: 'v0.1',
      root_public_key: root.publicKey,
      network_authority: {
        public_key: `${key}=`,
        valid_from: '2026-01-01T00:00:00Z',
        valid_to: end,
      },
      policy_manifest: { hash: 'sha256:00' },
    });
    assert.ok(genesis !== null);
    return signRecord(genesis, soleSigner(root));
  };
  const now = Date.parse('2026-02-01T00:00:00Z');
  const problem = (offered: GenesisBlock, held: GenesisBlock) =>
    genesisProblem(offered, { rootKey: root.publicKey, genesis: held }, now);
  const [short, long] = ['2026-04-01T00:00:00Z', '2027-04-01T00:00:00Z'].map((end) =>
    genesisUntil(end),
  ) as [GenesisBlock, GenesisBlock];
  assert.equal(problem(long, short), null);
  assert.match(String(problem(short, long)), /older/);
  assert.match(
    String(problem(genesisUntil('2028-01-01T00:00:00Z', 'B'.repeat(43)), long)),
    /older/,
  );
});
