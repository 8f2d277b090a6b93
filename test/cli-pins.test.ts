/** What the command line accepts from a server: only what follows from the key that it was given. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, suite, test } from 'node:test';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import type { Signer } from '../src/base/crypto/primitives.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { formatInstant } from '../src/base/timestamp.ts';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { operatorPayload } from '../src/client/signing.ts';
import { signRecord, soleSigner } from '../src/protocol/records/signed-record.ts';
import { runCommand } from './support/commands.ts';
import { endOf } from './support/failed-command.ts';
import { makeNetworkFolder, sharedScratch } from './support/folders.ts';
import { type HostileAuthority, startHostileAuthority } from './support/hostile-authority.ts';

const HOUR = 3_600_000;
const NOW = Date.now();
const SOME_ID = '10000000-0000-4000-8000-000000000001';

const scratch = sharedScratch();
const [alpha, other] = [network('alpha'), network('other')];
let hostile: HostileAuthority;

before(async () => {
  hostile = await startHostileAuthority();
});
after(async () => {
  await hostile[Symbol.asyncDispose]();
  for (const folder of [alpha.folder, other.folder]) {
    rmSync(folder, { recursive: true, force: true });
  }
});
beforeEach(() => {
  hostile.answers = honest();
  hostile.asked.length = 0;
});

/** A network with its keys, which can sign whatever a test needs. */
function network(name: string) {
  const { folder } = makeNetworkFolder(name);
  const signer = (key: string) => signerFromSeed(readKeyFile(join(folder, 'keys', `${key}.key`)));
  const genesis = JSON.parse(readFileSync(join(folder, 'genesis.json'), 'utf8'));
  return { folder, genesis, root: signer('root'), na: signer('na') };
}

function honest() {
  return { 'GET /genesis': alpha.genesis, 'GET /crl': crl(1) };
}

function genesis(changes: object, root: Signer = alpha.root) {
  const { signatures, ...unsigned } = alpha.genesis;
  return signRecord({ ...unsigned, ...changes }, soleSigner(root));
}

/** The genesis block with another delegation, valid from `from` to `to` in hours relative to now. */
function delegated(from: number, to: number, na: Signer = alpha.na) {
  const [valid_from, valid_to] = [formatInstant(NOW + from * HOUR), formatInstant(NOW + to * HOUR)];
  return genesis({ network_authority: { public_key: na.publicKey, valid_from, valid_to } });
}

function crl(sequence: number, revoked: readonly string[] = [], changes = {}, na = alpha.na) {
  const entry = { revoked_at: formatInstant(NOW), reason: 'unspecified', issuer: na.publicKey };
  const list = {
    crl_id: SOME_ID,
    sequence,
    issued_at: formatInstant(NOW - HOUR),
    next_update: formatInstant(NOW + 23 * HOUR),
    issuer: na.publicKey,
    revoked_certificates: revoked.map((certificate_id) => ({ certificate_id, ...entry })),
    ...changes,
  };
  return signRecord(list, soleSigner(na));
}

function certificate(node_public_key: string, changes = {}, na = alpha.na) {
  const unsigned = {
    cert_id: SOME_ID,
    node_public_key,
    network_name: 'alpha',
    roles: ['role:client'],
    issued_at: formatInstant(NOW),
    expires_at: formatInstant(NOW + 168 * HOUR),
    issued_by: na.publicKey,
    ...changes,
  };
  return signRecord(unsigned, soleSigner(na));
}

let folders = 0;

function newFolder(): string {
  folders += 1;
  return join(scratch, `node-${folders}`);
}

function nodeArgs(command: string, nodeDir: string, ...more: string[]): string[] {
  return ['node', command, '--node-dir', nodeDir, '--url', hostile.url, ...more];
}

const PINNED = ['--token', 'secret', '--root-key', alpha.root.publicKey];

async function madeNode(): Promise<{ nodeDir: string; publicKey: string }> {
  const nodeDir = newFolder();
  const made = await runCommand(['node', 'keygen', '--node-dir', nodeDir, '--json']);
  return { nodeDir, publicKey: JSON.parse(made.stdout).node_public_key };
}

suite('a node that knows the root key joins no other network', () => {
  const tampered = { ...genesis({}), network_name: 'mine' };
  const foreign = { ...alpha.genesis, root_public_key: other.root.publicKey };
  for (const [offer, answers, exit, message] of [
    ['the genesis of another network', { 'GET /genesis': other.genesis }, 4, /another root key$/],
    ['a genesis of another root key', { 'GET /genesis': foreign }, 4, /another root key$/],
    ['an altered genesis', { 'GET /genesis': tampered }, 4, /the root key did not sign it$/],
    ['a genesis signed by others', { 'GET /genesis': genesis({}, other.root) }, 4, /did not sign/],
    ['an unsigned genesis', { 'GET /genesis': { ...alpha.genesis, signatures: [] } }, 4, /sign/],
    ['a delegation that is over', { 'GET /genesis': delegated(-9, -1) }, 4, /was valid until 20/],
    [
      'a delegation of tomorrow',
      { 'GET /genesis': delegated(9, 99) },
      4,
      /not valid before 20\S+, and the clock of this machine says 20\S+: correct the clock/,
    ],
    [
      'garbage as genesis',
      { 'GET /genesis': '<html>' },
      5,
      /did not come from a network authority/,
    ],
    ['no genesis', { 'GET /genesis': null }, 5, /^No answer from the authority at /],
    ['an unsigned list', { 'GET /crl': { ...crl(1), signatures: [] } }, 4, /did not sign it$/],
    ['a foreign list', { 'GET /crl': crl(1, [], {}, other.na) }, 4, /did not sign it$/],
    ['an altered list', { 'GET /crl': { ...crl(1), sequence: 9 } }, 4, /did not sign it$/],
    [
      'an outdated list',
      { 'GET /crl': crl(1, [], { next_update: formatInstant(NOW - 1) }) },
      4,
      /it is out of date/,
    ],
    ['garbage as list', { 'GET /crl': '[]' }, 5, /did not come from a network authority/],
  ] as const) {
    test(`offered ${offer}, it keeps its token and saves nothing`, async () => {
      const nodeDir = newFolder();
      hostile.answers = { ...honest(), ...answers };
      const ended = await endOf(nodeArgs('join', nodeDir, ...PINNED));
      assert.equal(ended.exit, exit, ended.message);
      assert.match(ended.message, message);
      assert.equal(existsSync(nodeDir), false);
      assert.equal(JSON.stringify(hostile.asked).includes('secret'), false);
    });
  }

  test('a certificate for another node or network is not saved', async () => {
    const { nodeDir, publicKey } = await madeNode();
    for (const [given, message] of [
      [certificate(other.na.publicKey), /another key/],
      [certificate(publicKey, { network_name: 'other' }), /another network/],
      [certificate(publicKey, {}, other.na), /no signature verifies/],
      [certificate(publicKey, { expires_at: formatInstant(NOW - 1) }), /expired/],
      [certificate(publicKey, { issued_at: formatInstant(NOW + HOUR) }), /not valid yet/],
    ] as const) {
      hostile.answers = { ...honest(), 'POST /join': given };
      const ended = await endOf(nodeArgs('join', nodeDir, ...PINNED));
      assert.deepEqual([ended.exit, ended.code], [EXIT.refused, 'invalid_certificate']);
      assert.match(ended.message, message);
      assert.equal(existsSync(join(nodeDir, 'certificate.json')), false);
    }
  });

  test('neither a private root key in place of a public one, nor a key in place of a token, is ever sent', async () => {
    const seed = readKeyFile(join(alpha.folder, 'keys', 'root.key')).toString('base64');
    const asRoot = await endOf(nodeArgs('join', newFolder(), '--root-key', seed, '--token', 'abc'));
    assert.equal(asRoot.exit, EXIT.usage, asRoot.message);
    assert.match(asRoot.message, /private root key of the network.*root\.pub/);
    for (const token of [
      ['--token-file', join(alpha.folder, 'keys', 'root.key')],
      ['--token-file', join(alpha.folder, 'keys', 'root.pub')],
      ['--token', seed],
    ]) {
      const root = ['--root-key', alpha.root.publicKey];
      const ended = await endOf(nodeArgs('join', newFolder(), ...root, ...token));
      assert.equal(ended.exit, EXIT.unusable, ended.message);
      assert.match(ended.message, /contains a key instead of an invite token: give /);
    }
    assert.equal(JSON.stringify(hostile.asked).includes(seed), false);
  });

  test('without a root key it contacts nobody, unless it may trust on first use', async () => {
    const { nodeDir, publicKey } = await madeNode();
    hostile.answers = { ...honest(), 'POST /join': certificate(publicKey) };
    const join = nodeArgs('join', nodeDir, '--token', 'secret', '--json');
    const refused = await runCommand(join);
    assert.equal(refused.code, EXIT.usage);
    assert.match(refused.stderr, /give its --root-key, or its --genesis file/);
    assert.equal(hostile.asked.length, 0);
    const trusting = await runCommand([...join, '--trust-on-first-use']);
    assert.equal(trusting.code, EXIT.done, trusting.stderr);
    // From now on, the root key in the node's folder decides.
    hostile.answers = { ...honest(), 'GET /genesis': other.genesis };
    const again = await endOf(nodeArgs('renew', nodeDir, '--trust-on-first-use'));
    assert.deepEqual([again.exit, again.code], [EXIT.refused, 'invalid_genesis']);
    const contrary = await endOf(nodeArgs('renew', nodeDir, '--root-key', other.root.publicKey));
    assert.equal(contrary.exit, EXIT.unusable);
    assert.match(contrary.message, /genesis\.json has root key /);
  });

  test('its own copy of the genesis must be signed, and older copies bring no key back', async () => {
    const file = join(other.folder, 'genesis.json');
    const foreign = await endOf(nodeArgs('join', newFolder(), '--token', 't', '--genesis', file));
    assert.equal(foreign.code, 'invalid_genesis');
    hostile.answers = { ...honest(), 'GET /genesis': delegated(-999, 999, other.na) };
    const own = join(alpha.folder, 'genesis.json');
    const older = await endOf(nodeArgs('join', newFolder(), '--token', 't', '--genesis', own));
    assert.match(
      older.message,
      /genesis from the authority is rejected: it is older than the stored one/,
    );
  });
});

suite('a node that has joined', () => {
  let nodeDir: string;
  let held: string;
  const files = () =>
    ['genesis.json', 'crl.json'].map((name) => readFileSync(join(nodeDir, name), 'utf8')).join();

  before(async () => {
    const made = await madeNode();
    nodeDir = made.nodeDir;
    hostile.answers = {
      ...honest(),
      'GET /crl': crl(5, ['a']),
      'POST /join': certificate(made.publicKey),
    };
    const joined = await runCommand(nodeArgs('join', nodeDir, ...PINNED));
    assert.equal(joined.code, EXIT.done, joined.stderr);
    held = files();
  });
  afterEach(() => assert.equal(files(), held, 'what it holds is as it was'));

  for (const [offer, answers, message] of [
    ['an older list', { 'GET /crl': crl(4, ['a']) }, /older than .* \(sequence 4, stored 5\)/],
    ['an emptied list', { 'GET /crl': crl(6) }, /lacks revocations of the stored one/],
    ['another list of that number', { 'GET /crl': crl(5, ['b']) }, /with the same sequence 5$/],
    ['another network', { 'GET /genesis': other.genesis }, /another root key$/],
    ['an earlier authority key', { 'GET /genesis': delegated(-999, 999, other.na) }, /older than/],
    ['another name', { 'GET /genesis': genesis({ network_name: 'b' }) }, /another network$/],
  ] as const) {
    test(`is not fooled by ${offer}`, async () => {
      hostile.answers = { ...honest(), 'GET /crl': crl(5, ['a']), ...answers };
      for (const command of ['status', 'renew']) {
        const { exit, message: said } = await endOf(nodeArgs(command, nodeDir));
        assert.equal(exit, EXIT.refused);
        assert.match(said, message);
      }
    });
  }

  test('binds the proof in a header to the authority that it has pinned', async () => {
    hostile.answers = {
      'GET /sovereign.json': { network_authority: { public_key: other.na.publicKey } },
      'POST /heartbeat': { ack: true, server_time: formatInstant(NOW) },
    };
    const beat = await runCommand(nodeArgs('heartbeat', nodeDir, '--proof', 'header'));
    assert.equal(beat.code, EXIT.done, beat.stderr);
    assert.deepEqual(
      hostile.asked.map(({ route }) => route),
      ['POST /heartbeat'],
    );
    const [{ headers, body } = assert.fail()] = hostile.asked;
    const proof = String(headers['x-mesh-node-proof']);
    const part = (name: string) => new RegExp(`${name}=([^;]+)`).exec(proof)?.[1] ?? '';
    const text = canonicalJson({
      ...{ v: 1, purpose: 'node-proof', method: 'POST', path: '/heartbeat', query: {} },
      audience: alpha.na.publicKey,
      body_sha256: createHash('sha256').update(body).digest('hex'),
      ...{ key: part('key'), timestamp: part('ts'), nonce: part('nonce') },
    });
    assert.ok(verifySignature(part('key'), text, part('sig')));
  });

  test('shows what its agent could not do', async () => {
    const problem = 'The certificate was superseded (certificate_superseded): a copy is in use';
    writeFileSync(join(nodeDir, 'agent.json'), JSON.stringify({ problem }));
    const { code, stdout } = await runCommand(nodeArgs('status', nodeDir, '--offline'));
    assert.equal(code, EXIT.done);
    assert.ok(stdout.endsWith(`node run     ${problem}\n`), stdout);
  });

  test('learns that its certificate is revoked, which ends with 4', async () => {
    const kept = held;
    hostile.answers = { ...honest(), 'GET /crl': crl(6, ['a', SOME_ID]) };
    const { code, stdout } = await runCommand(nodeArgs('status', nodeDir, '--json'));
    held = files();
    assert.notEqual(held, kept, 'the newer list is kept');
    const { valid, revoked, reason, revocation_reason } = JSON.parse(stdout);
    assert.equal(code, EXIT.refused);
    assert.deepEqual([valid, revoked, reason], [false, true, 'revoked']);
    assert.equal(revocation_reason, 'unspecified');
  });
});

suite('an operator signs for one authority, regardless of what a server claims to be', () => {
  const keyFile = join(alpha.folder, 'keys', 'operator-privileged.key');
  const operatorKey = signerFromSeed(readKeyFile(keyFile)).publicKey;
  const config = ['--config-home', join(scratch, 'config')];
  const nowhere = ['--data-dir', join(scratch, 'nowhere')];

  beforeEach(() => {
    hostile.answers = {
      'GET /sovereign.json': { network_authority: { public_key: other.na.publicKey } },
      'GET /admin/certificates?status=in_use&limit=1000': { count: 0, certificates: [] },
    };
  });

  /** Whether exactly one request was sent, and it is signed for this authority. */
  function isSignedFor(audience: string): boolean {
    const [asked, second] = hostile.asked.filter(({ route }) => route !== 'GET /authority-keys');
    assert.deepEqual(
      [asked?.route, second],
      ['GET /admin/certificates?status=in_use&limit=1000', undefined],
    );
    const header = (name: string) => String(asked?.headers[`x-admin-${name}`]);
    const [keyId, timestamp, nonce] = [header('key-id'), header('timestamp'), header('nonce')];
    const query = { limit: ['1000'], status: ['in_use'] };
    const signed = { method: 'GET', path: '/admin/certificates', query, audience, body: {} };
    const text = operatorPayload({ ...signed, keyId, timestamp, nonce });
    return verifySignature(operatorKey, text, header('signature'));
  }

  test('that of the data folder', async () => {
    const args = ['node', 'list', '--url', hostile.url, '--data-dir', alpha.folder];
    assert.equal((await runCommand(args)).code, EXIT.done);
    assert.ok(isSignedFor(alpha.na.publicKey));
  });

  test('that of a profile, which only --force changes', async () => {
    const connect = ['connect', hostile.url, '--key-file', keyFile, '--profile', 'far', ...config];
    const key = ['--authority-key', alpha.na.publicKey];
    const saved = await runCommand([...connect, ...key, '--offline', '--json']);
    assert.equal(saved.code, EXIT.done, saved.stderr);
    const { file, authority_key } = JSON.parse(saved.stdout);
    assert.equal(authority_key, alpha.na.publicKey);
    assert.ok(file.startsWith(join(scratch, 'config', 'mesh-na')));
    const replaced = await endOf([...connect, '--authority-key', other.na.publicKey]);
    assert.deepEqual([replaced.exit, replaced.code], [EXIT.unusable, 'local_files']);

    const ended = await runCommand(['node', 'list', '--profile', 'far', ...config, ...nowhere]);
    assert.equal(ended.code, EXIT.done, ended.stderr);
    assert.ok(isSignedFor(alpha.na.publicKey));
    const unknown = await endOf(['node', 'list', '--profile', 'near', ...config]);
    assert.equal(unknown.exit, EXIT.unusable);
    assert.match(unknown.message, /no profile "near"; create one with mesh-na connect$/);
  });

  test('none, if no authority is known', async () => {
    const args = [
      'node',
      'list',
      '--url',
      hostile.url,
      '--key-file',
      keyFile,
      ...nowhere,
      ...config,
    ];
    const { exit, message } = await endOf(args);
    assert.equal(exit, EXIT.unusable);
    assert.match(message, /genesis\.json does not exist, so the authority key is not known; give /);
    assert.equal(hostile.asked.length, 0);
  });
});
