/** The node commands while the authority's key is replaced [authority-keys-7], in real time. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { authorityKeysDigest } from '../src/protocol/records/authority-chain.ts';
import { genesisDigest } from '../src/protocol/records/genesis.ts';
import { chainOf, countedKey, HOUR, ROOT, START, type Step } from './support/authority-chain.ts';
import { runCommand, startCommand } from './support/commands.ts';
import { sharedScratch } from './support/shared-scratch.ts';
import { FIRST_GENESIS, startSuccessionAuthority } from './support/succession-authority.ts';
import { until } from './support/until.ts';

const na = await startSuccessionAuthority();
after(() => na[Symbol.asyncDispose]());
const scratch = sharedScratch();

/** Hours since the start of the chain, because the commands read the machine's clock. */
const NOW = (Date.now() - START) / HOUR;
const SECOND = countedKey(2).publicKey;
const DIGEST = genesisDigest(FIRST_GENESIS, SHA256);
const planned: Step = { kind: 'planned', at: NOW - 1, overlap: 40 };
const stolen: Step = { kind: 'compromise', at: NOW - 1 };
const chain = (...steps: Step[]) => chainOf(steps, DIGEST);

let folders = 0;
let nodeDir = '';

const command = (name: string, ...more: string[]) => commandIn(nodeDir, name, ...more);

const commandIn = (folder: string, name: string, ...more: string[]) =>
  runCommand(['node', name, '--node-dir', folder, ...more], { MESH_URL: na.url });

const filesIn = (folder: string) =>
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]);

/** Gives the test a node that joined this many hours ago, before the change. */
async function joined(hoursAgo: number): Promise<void> {
  folders += 1;
  nodeDir = join(scratch, `node-${folders}`);
  na.successions = [];
  na.clock.step(Date.now() - hoursAgo * HOUR - na.clock.now());
  const { code, stderr } = await command('join', '--token', 'a', '--root-key', ROOT.publicKey);
  assert.equal(code, 0, stderr);
  na.clock.step(Date.now() - na.clock.now());
}

beforeEach(() => joined(0));

const NEWS = `mesh-na: The authority's key was replaced by ${SECOND} on `;

test('node status follows a planned change, reports it once, and node renew gets a certificate of both keys', async () => {
  await joined(2);
  na.successions = chain(planned);
  const first = await command('status');
  assert.equal(first.code, 0, first.stderr);
  assert.ok(first.stderr.startsWith(NEWS), first.stderr);
  assert.match(first.stderr, /, as planned; both keys sign until \S+Z\n$/);
  assert.match(
    first.stdout,
    new RegExp(
      `^authority {4}${SECOND.replace('+', '\\+')}, which has not signed .*node renew$`,
      'm',
    ),
  );
  const renewed = await command('renew');
  assert.deepEqual([renewed.code, renewed.stderr], [0, '']);
  const online = await command('status', '--json');
  const offline = await command('status', '--json', '--offline');
  for (const { stdout, stderr } of [online, offline]) {
    const status = JSON.parse(stdout);
    assert.deepEqual(
      [stderr, status.valid, status.authority_key, status.signed_by_current_key],
      ['', true, SECOND, true],
    );
  }
});

test('node status follows a compromise: a certificate of the thief’s time is worth nothing until it is renewed', async () => {
  await joined(1.5);
  na.successions = chain(stolen);
  const { code, stdout, stderr } = await command('status');
  assert.equal(code, 4);
  assert.match(
    stderr,
    /because it was compromised; what only the old key signed from \S+Z on is void/,
  );
  assert.match(stdout, /^valid {8}no: no signature verifies/m);
  assert.equal((await command('renew')).code, 0);
  assert.equal((await command('status')).code, 0);
});

test('without the authority, a chain in a file leads from the key in the folder to that of the list', async () => {
  await joined(2);
  na.successions = chain(planned, { kind: 'planned', at: NOW - 0.5, overlap: 0.1 });
  const third = countedKey(3);
  const [crl, keys] = [join(scratch, 'crl.json'), join(scratch, 'keys.json')];
  writeFileSync(crl, JSON.stringify(na.list(10_000, [third])));
  writeFileSync(keys, await (await fetch(`${na.url}/authority-keys`)).text());
  const without = await command('status', '--offline', '--crl', crl);
  assert.equal(without.code, 4);
  assert.match(without.stderr, /the authority of the genesis did not sign it/);
  const offline = ['--offline', '--crl', crl, '--authority-keys', keys, '--json'];
  const { code, stdout, stderr } = await command('status', ...offline);
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).authority_key, third.publicKey);
  const misused = await command('status', '--authority-keys', keys);
  assert.deepEqual(
    [misused.code, /--authority-keys needs --offline/.test(misused.stderr)],
    [2, true],
  );
});

const digests = () =>
  na.asked.splice(0).flatMap(({ path, body }) => {
    return path === '/heartbeat' ? [body.authority_keys_digest ?? null] : [];
  });

test('node heartbeat follows what a bulletin names, and reports it with the next heartbeat', async () => {
  digests();
  await command('heartbeat');
  na.successions = chain(planned);
  const learned = await command('heartbeat');
  assert.ok(learned.stderr.startsWith(NEWS), learned.stderr);
  const again = await command('heartbeat', '--proof', 'header');
  assert.deepEqual([learned.code, again.code, again.stderr], [0, 0, '']);
  assert.deepEqual(digests(), [null, null, authorityKeysDigest(na.successions, SHA256)]);

  const before = filesIn(nodeDir);
  na.successions = chain({ ...planned, at: NOW - 0.9 });
  const fork = await command('heartbeat');
  assert.equal(fork.code, 0, 'the node is alive all the same');
  assert.match(fork.stdout, /^Heartbeat acknowledged/);
  assert.match(
    fork.stderr,
    /is older than the stored one|same sequence as another signed statement/,
  );
  assert.deepEqual(filesIn(nodeDir), before);
});

test('node heartbeat discards a statement that is canceled before it is in force', async () => {
  digests();
  na.successions = chain({ ...planned, at: NOW + 10 });
  const announced = authorityKeysDigest(na.successions, SHA256);
  await command('heartbeat');
  await command('heartbeat');
  na.successions = [];
  await command('heartbeat');
  const { code, stderr } = await command('heartbeat');
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(digests(), [null, announced, announced, null]);
  const { stdout } = await command('status', '--offline', '--json');
  assert.equal(JSON.parse(stdout).authority_keys_digest, null);
});

test('node heartbeat follows if its proof names a key that was replaced', async () => {
  na.successions = chain(planned, { kind: 'planned', at: NOW - 0.5, overlap: 0.1 });
  na.instead.set('/heartbeat', () => {
    const isKnown = existsSync(join(nodeDir, 'authority-keys.json'));
    return isKnown
      ? { ack: true, server_time: '2026-01-15T12:00:00Z' }
      : { error: { code: 'invalid_proof', message: 'The proof is not valid', details: {} } };
  });
  const { code, stdout, stderr } = await command('heartbeat', '--proof', 'header');
  na.instead.clear();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^Heartbeat acknowledged/);
});

test('the node commands accept nothing of a fork or an old genesis, and fetch again what is damaged', async () => {
  na.successions = chain(planned);
  assert.equal((await command('status')).code, 0);
  const before = filesIn(nodeDir);
  na.successions = chain({ ...planned, at: NOW - 0.9 });
  const fork = await command('status');
  assert.equal(fork.code, 4);
  assert.match(
    fork.stderr,
    /is older than the stored one|same sequence as another signed statement/,
  );
  na.instead.set('/genesis', () => JSON.parse(readFileSync(join(nodeDir, 'genesis.json'), 'utf8')));
  const other = await command('status');
  na.instead.clear();
  assert.equal(other.code, 4);
  assert.match(other.stderr, /authority keys are rejected: Statement 1 .* ask the operators/);
  assert.deepEqual(filesIn(nodeDir), before);

  na.successions = chain(planned);
  na.instead.set('/genesis', () => FIRST_GENESIS);
  const fresh = ['--token', 'a', '--root-key', ROOT.publicKey];
  const old = await commandIn(`${nodeDir}-fresh`, 'join', ...fresh);
  na.instead.clear();
  assert.equal(old.code, 4);
  assert.match(old.stderr, /genesis from .* is rejected: its authority key \S+ is not the current/);
  assert.equal(existsSync(`${nodeDir}-fresh`), false);

  const damaged = `${nodeDir}-damaged`;
  cpSync(nodeDir, damaged, { recursive: true });
  writeFileSync(join(damaged, 'authority-keys.json'), '{');
  nodeDir = damaged;
  const offline = await command('status', '--offline');
  assert.deepEqual([offline.code, /keys are damaged/.test(offline.stderr)], [3, true]);
  assert.equal((await command('heartbeat')).code, 0);
  writeFileSync(join(damaged, 'authority-keys.json'), '');
  const { code, stderr } = await command('status');
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^mesh-na: \S+authority-keys\.json is damaged, and is fetched again\n/);
  assert.deepEqual(filesIn(damaged), before);
});

test('node status accepts nothing of a chain that is shorter than the known one, and says so in one sentence', async () => {
  await joined(2);
  na.successions = chain(planned, { kind: 'planned', at: NOW - 0.5, overlap: 20 });
  assert.equal((await command('status')).code, 0);
  const before = filesIn(nodeDir);
  na.successions = chain(planned);
  // The server answers with an old copy, of the statements alone or of everything.
  const genesis = JSON.parse(readFileSync(join(nodeDir, 'genesis.json'), 'utf8'));
  na.instead.set('/genesis', () => genesis);
  const ofStatements = await command('status');
  na.instead.clear();
  const ofEverything = await command('status');
  for (const { code, stdout, stderr } of [ofStatements, ofEverything]) {
    assert.deepEqual([code, stdout], [4, '']);
    assert.match(stderr, /^mesh-na: [^\n]+\n$/);
  }
  assert.match(
    ofStatements.stderr,
    /: The authority keys are rejected: The chain has only 1 of 2 known statements, so it is an old copy; .*\.\n$/,
  );
  assert.deepEqual(filesIn(nodeDir), before);
  assert.equal((await command('status', '--offline')).code, 0);
});

test('node run reports in one line that it follows, and renews within MESH_SUCCESSION_SPREAD', async () => {
  na.successions = chain(stolen);
  const environment = { MESH_URL: na.url, MESH_SUCCESSION_SPREAD: '1s' };
  const running = startCommand(['node', 'run', '--node-dir', nodeDir], environment);
  await until(() => running.shown().includes('Renewed: '));
  const { stderr, code } = await running.stop();
  assert.equal(code, 0, stderr);
  const { signatures } = JSON.parse(readFileSync(join(nodeDir, 'certificate.json'), 'utf8'));
  assert.equal(signatures[0].key_id, SECOND);
  assert.equal(stderr.split('\n').filter((line) => line.startsWith(NEWS)).length, 1, stderr);
  const [, renewed = '', end] = stderr.split('\n');
  assert.match(renewed, /^mesh-na: Renewed: certificate /);
  assert.equal(end, '');
  assert.ok(existsSync(join(nodeDir, 'authority-keys.json')));
});
