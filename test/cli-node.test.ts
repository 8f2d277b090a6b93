/** The commands of nodes, in real time: `mesh-na node run` as a process, lost answers, and a change of the authority's key. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, beforeEach, suite, test } from 'node:test';
import { SHA256 } from '../src/base/crypto/digest.ts';
import { EXIT } from '../src/cli/kernel/errors.ts';
import { authorityKeysDigest } from '../src/protocol/records/authority-chain.ts';
import { genesisDigest } from '../src/protocol/records/genesis.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { chainOf, countedKey, HOUR, ROOT, START, type Step } from './support/authority-chain.ts';
import { runProgram, runProgramBehind } from './support/child-server.ts';
import { REAL_TIME } from './support/clock.ts';
import { runCommand, startCommand } from './support/commands.ts';
import { scratchFolder, sharedScratch } from './support/folders.ts';
import { LOADER } from './support/project.ts';
import { get, invite, operate } from './support/requests.ts';
import { type SmallDisk, smallDisk } from './support/small-disk.ts';
import { FIRST_GENESIS, startSuccessionAuthority } from './support/succession-authority.ts';
import { until } from './support/until.ts';

const na = await startTestAuthority({
  clock: REAL_TIME,
  environment: { MESH_ACTIVE_NODE_WINDOW_SECONDS: '3' },
});
after(() => na[Symbol.asyncDispose]());
const scratch = sharedScratch();
const rootKey: string = (await get(na, '/genesis')).body.root_public_key;
/** Further lines are indented and say how to fix the problem. */
const ONE_SENTENCE = /^mesh-na: [^\n]+\n(?: {2}[^\n]+\n)*$/;
const tokenFile = join(scratch, 'token');
const nodeDir = join(scratch, 'node');

/** As docs/install.md recommends: otherwise garbage from startup stays in memory for a long time. */
const FRUGAL = '--max-semi-space-size=1';

/**
 * The private memory of the process, because the file pages of Node.js are shared among all its processes. On a busy
 * machine, the garbage of the start is collected later.
 */
async function becomesSmall(child: ChildProcess | null): Promise<void> {
  const { pid } = child ?? {};
  const kilobytes = () =>
    Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  // Compiling the sources takes more memory than the program itself.
  if (LOADER.length === 0) await until(() => kilobytes() < 60_000);
  assert.doesNotMatch(readFileSync(`/proc/${pid}/maps`, 'utf8'), /\.node$/m);
}

function stateIn(folder: string) {
  const file = join(folder, 'agent.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { last_heartbeat: null };
}

test('a node joins, follows its network, is stopped and started again, and exits when it is revoked', async () => {
  writeFileSync(tokenFile, await invite(na));
  const log = join(scratch, 'changes');
  const onChange = `echo "$@" >> ${log}; true`;
  let child: ChildProcess | null = null;
  const joining = ['--root-key', rootKey, '--token-file', tokenFile, '--on-change', onChange];
  const first = runProgram(
    ['node', 'run', '--node-dir', nodeDir, ...joining],
    { MESH_URL: na.url, NODE_OPTIONS: FRUGAL },
    (process) => (child = process),
  );
  await until(() => stateIn(nodeDir).last_heartbeat !== null);
  await until(() => existsSync(log) && readFileSync(log, 'utf8').includes('certificate'));
  await becomesSmall(child);
  const kill = (signal: NodeJS.Signals) => (child as ChildProcess | null)?.kill(signal);
  for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) kill(signal);
  await moreBeats(1);
  kill('SIGTERM');
  const stopped = await first;
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.match(stopped.stdout, /^Stopped\.\n$/);
  assert.match(
    stopped.stderr,
    /^mesh-na: Joined: certificate \S+ of network "\S+", .*, until \S+Z\n/,
  );
  const names = readFileSync(log, 'utf8').trim().split(/\s+/);
  assert.deepEqual(names.toSorted(), ['certificate', 'crl', 'genesis', 'policy']);

  rmSync(tokenFile);
  const second = runCommand(['node', 'run', '--node-dir', nodeDir]);
  const { cert_id } = stateIn(nodeDir);
  await operate(na, '/admin/revoke', { cert_id });
  const ended = await second;
  assert.equal(ended.code, 4, ended.stderr);
  assert.match(
    ended.stderr,
    new RegExp(
      `revocation list of the network: certificate ${cert_id}, unspecified, 2\\S+Z\\n {2}`,
    ),
  );
  const status = await runCommand(['node', 'status', '--node-dir', nodeDir, '--offline', '--json']);
  const { agent, revoked } = JSON.parse(status.stdout);
  assert.equal(revoked, true);
  assert.equal(agent.ended.code, 'certificate_revoked');
  assert.equal(agent.cert_id, cert_id);
});

test('anything that prevents a node’s start is refused in one sentence, with a cure if there is one', async () => {
  const damaged = join(scratch, 'damaged');
  cpSync(nodeDir, damaged, { recursive: true });
  writeFileSync(join(damaged, 'certificate.json'), '{"cert_id"');
  const file = join(scratch, 'file');
  writeFileSync(file, '');
  const used = join(scratch, 'used');
  writeFileSync(used, 'used');
  const other = Buffer.alloc(32, 1).toString('base64');
  const cases: [folder: string, args: string[], code: number, message: RegExp][] = [
    [nodeDir, ['--root-key', other], 3, /has root key .*, not /],
    [damaged, [], 3, /The stored certificate is damaged/],
    [join(scratch, 'new'), [], 2, /give its --root-key/],
    [join(file, 'node'), ['--root-key', rootKey], 3, /file\/node/],
    [
      join(scratch, 'empty'),
      ['--root-key', rootKey],
      4,
      /no certificate and no invite token\n {2}Name the file with an invite token: --token-file\.\n/,
    ],
    [
      join(scratch, 'empty'),
      ['--root-key', rootKey, '--token-file', join(scratch, 'gone')],
      4,
      /no certificate and no invite token\n {2}There is no file \S+gone\.\n/,
    ],
    [
      join(scratch, 'empty'),
      ['--root-key', rootKey, '--token-file', used],
      4,
      /^mesh-na: The invite token is not valid\n {2}Ask an operator for a new invite: /,
    ],
  ];
  for (const [folder, args, expected, message] of cases) {
    const command = ['node', 'run', '--node-dir', folder, ...args];
    const { code, stderr } = await runCommand(command, { MESH_URL: na.url });
    assert.equal(code, expected, `${folder}: ${stderr}`);
    assert.match(stderr, ONE_SENTENCE);
    assert.match(stderr, message);
  }
});

for (const [fault, code, breakDisk, mendDisk] of [
  ['is full', 'ENOSPC', (disk: SmallDisk) => disk.fill(), (disk: SmallDisk) => disk.clear()],
  [
    'cannot be written',
    'EROFS',
    (disk: SmallDisk) => disk.lock(true),
    (disk: SmallDisk) => disk.lock(false),
  ],
] as const) {
  test(`a node whose disk ${fault} continues to send heartbeats, reports it once, and recovers`, async (t) => {
    await using disk = await smallDisk('256k');
    if (disk === null) return t.skip('no disk can be mounted here');
    const folder = join(disk.path, 'node');
    const token = join(scratch, `token-${code}`);
    const within = join(disk.inside.path, 'node');
    writeFileSync(token, await invite(na));
    const joining = ['--root-key', rootKey, '--token-file', token];
    const first = startNode(disk, ['--node-dir', within, ...joining]);
    await until(() => stateIn(folder).last_heartbeat !== null);
    breakDisk(disk);
    await until(() => first.shown().includes('cannot be written'));
    const held = recordsIn(folder);
    await moreBeats(2);
    assert.deepEqual(recordsIn(folder), held, 'nothing is changed');
    mendDisk(disk);
    await until(() => first.shown().includes('is writable again'));
    await until(() => stateIn(folder).problem === null);
    const { stderr } = await first.stop();
    assert.equal(
      stderr.split(`agent.json cannot be written (${code}); this node keeps running`).length,
      2,
    );

    breakDisk(disk);
    const second = startNode(disk, ['--node-dir', within]);
    await moreBeats(2);
    assert.match((await second.stop()).stderr, new RegExp(`cannot be written \\(${code}\\)`));
    const refused = await startNode(disk, ['--node-dir', `${within}-2`, ...joining]).ended;
    assert.equal(refused.code, 3, refused.stderr);
    assert.match(refused.stderr, ONE_SENTENCE);
    mendDisk(disk);
    const again = await startNode(disk, ['--node-dir', `${within}-2`, ...joining]).ended;
    assert.match(again.stderr, /^mesh-na: The invite token is not valid\n/, 'it was used before');
  });
}

/** As a process, because only that sees the disk where its path leads. */
function startNode({ inside }: SmallDisk, args: readonly string[]) {
  let child: ChildProcess | null = null;
  let shown = '';
  const command = ['node', 'run', ...args];
  const ended = runProgramBehind(inside.command, command, { MESH_URL: na.url }, (process) => {
    child = process;
    process.stderr?.on('data', (text) => {
      shown += text;
    });
  });
  return {
    ended,
    shown: () => shown,
    async stop() {
      child?.kill('SIGTERM');
      const end = await ended;
      assert.equal(end.code, 0, end.stderr);
      return end;
    },
  };
}

/** A node's files and their contents, without files still being written, whose names end in a random part. */
function recordsIn(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => /\.(json|key|pub)$/.test(name))
    .sort()
    .map((name) => `${name} ${readFileSync(join(folder, name), 'utf8')}`);
}

/** Resolves when the authority has accepted `count` more heartbeats, which only one node sends. */
async function moreBeats(count: number): Promise<void> {
  const accepted = async () => {
    const { text } = await get(na, '/metrics');
    const counts = [...text.matchAll(/^mesh_na_heartbeats_total\{.*\} (\d+)$/gm)];
    return counts.reduce((sum, [, beats]) => sum + Number(beats), 0);
  };
  const before = await accepted();
  await until(async () => (await accepted()) >= before + count);
}

test('heartbeats at an interval continue after one that took too long', async () => {
  const error = { code: 'request_timeout', message: 'The request took too long' };
  await using slow = await answering((_, response) => {
    response.writeHead(408).end(JSON.stringify({ error }));
  });
  const command = ['node', 'heartbeat', '--every', '1', '--node-dir', nodeDir, '--url', slow.url];
  const running = startCommand(command);
  await until(() => running.shown().split('request_timeout').length > 2);
  const { code, stderr } = await running.stop();
  assert.equal(code, 0, stderr);
});

// A node whose join was carried out, but whose answer was lost, gets its certificate from the same command.

/** Forwards requests, and drops the connection instead of the answer to a join while `isLossy`. */
async function lossyRelay(na: TestAuthority) {
  const lossy = { isLossy: true };
  const server = await answering((received, response) => {
    const { method, headers, url = '' } = received;
    const sent = request(new URL(url, na.url), { method, headers }, (answer) => {
      if (url === '/join' && lossy.isLossy) {
        answer.resume();
        answer.on('end', () => response.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    received.pipe(sent);
  });
  return Object.assign(lossy, server);
}

/** A server that answers like this. */
async function answering(answer: RequestListener) {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

for (const proof of ['body', 'header']) {
  test(`a join with its proof in the ${proof} that was carried out without an answer is not lost`, async () => {
    await using na = await startTestAuthority({ clock: REAL_TIME });
    await using folder = scratchFolder();
    await using relay = await lossyRelay(na);
    const token = await invite(na);
    const nodeDir = join(folder.path, 'node');
    const args = [
      ...['node', 'join', '--url', relay.url, '--node-dir', nodeDir, '--token', token],
      ...['--genesis', join(na.dataDir, 'genesis.json'), '--proof', proof],
    ];
    const lost = await runCommand(args);
    assert.equal(lost.code, EXIT.unreachable, lost.stderr);
    assert.match(lost.stderr, /may have issued the certificate: run the same command again/);
    assert.equal(existsSync(join(nodeDir, 'certificate.json')), false);
    const kept = join(nodeDir, 'request.json');
    assert.equal(statSync(kept).mode & 0o777, 0o600);
    assert.equal(readFileSync(kept, 'utf8').includes(token), false, 'the token is a secret');
    relay.isLossy = false;
    const again = await runCommand(args);
    assert.equal(again.code, EXIT.done, again.stderr);
    const certificate = JSON.parse(readFileSync(join(nodeDir, 'certificate.json'), 'utf8'));
    const list = await operate(na, '/admin/certificates', {}, { method: 'GET' });
    assert.deepEqual(
      list.body.certificates.map(({ cert_id }: { cert_id: string }) => cert_id),
      [certificate.cert_id],
      'no other certificate was issued',
    );
  });
}

// [authority-keys-7], in real time.
suite('while the authority’s key is replaced', async () => {
  const na = await startSuccessionAuthority();
  after(() => na[Symbol.asyncDispose]());

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
    na.instead.set('/genesis', () =>
      JSON.parse(readFileSync(join(nodeDir, 'genesis.json'), 'utf8')),
    );
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
    assert.match(
      old.stderr,
      /genesis from .* is rejected: its authority key \S+ is not the current/,
    );
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
});
