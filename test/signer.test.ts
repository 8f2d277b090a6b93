/** The key of the authority in another process: what it signs, and how an authority works without it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { Agent, createServer, request, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import { parseJson } from '../src/base/json/parse.ts';
import type { JsonObject } from '../src/base/json/value.ts';
import { canonicalJson } from '../src/base/json/write.ts';
import { readKeyFile } from '../src/base/keys/key-file.ts';
import { connectSigner } from '../src/base/signer/connection.ts';
import { challengeText, KEY_HEADER } from '../src/base/signer/protocol.ts';
import {
  kindOf,
  type SignerServiceOptions,
  startSignerService,
} from '../src/base/signer/service.ts';
import { nextKey } from '../src/cli/authority-key/next-key.ts';
import { soleSigner } from '../src/protocol/records/signed-record.ts';
import { nextKeyFile } from '../src/server/config/identity.ts';
import { loadConfig } from '../src/server/config/load.ts';
import { startListThread } from '../src/server/threads/list-thread.ts';
import { startTestAuthority, type TestAuthority, type TestOptions } from './support/authority.ts';
import { NO_LIMITS, startChildServer } from './support/child-server.ts';
import { HOUR } from './support/clock.ts';
import { runCommand } from './support/commands.ts';
import { metricOf } from './support/metrics.ts';
import { PROJECT } from './support/project.ts';
import {
  auditEvents,
  get,
  heartbeat,
  invite,
  joinedNode,
  newKey,
  nodeRequest,
  operate,
  outcome,
  sendSigned,
  signedByNode,
  type TestNode,
} from './support/requests.ts';
import {
  type RunningSigner,
  refusedSigner,
  type SignedNetwork,
  signedNetwork,
  startSigner,
} from './support/signer.ts';
import { activate, stage, step, succession } from './support/successions.ts';
import { attest, issued, parsed, recognize, revokeAttestation, verifies } from './support/trust.ts';
import { until } from './support/until.ts';

const UNSIGNED = '503 signer_unavailable';

const { vectors } = JSON.parse(
  readFileSync(new URL('test/vectors/signer.json', PROJECT), 'utf8'),
) as { vectors: Vectors };

interface Asked {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface Exchange {
  readonly asked: Asked;
  readonly text?: string;
  readonly answered: { readonly status: number; readonly body: string };
}

interface KeyPair {
  readonly seed_base64: string;
  readonly public_base64: string;
}

interface Vectors {
  readonly key: KeyPair;
  readonly second: KeyPair;
  readonly keys: Exchange;
  readonly both_keys: Exchange;
  readonly challenge: Exchange & { readonly nonce_hex: string };
  readonly signatures: readonly Exchange[];
  readonly refusals: readonly Exchange[];
  readonly too_long: { readonly asked: Asked };
}

function start(
  { dataDir, address }: SignedNetwork,
  { flags, ...given }: TestOptions = {},
): Promise<TestAuthority> {
  return startTestAuthority({ dataDir, flags: { signer: address, ...flags }, ...given });
}

async function enrollment(na: TestAuthority): Promise<string> {
  return (await get(na, '/readyz')).body.enrollment;
}

async function bulletinFor(na: TestAuthority, { key, certId }: TestNode) {
  const beat = { cert_id: certId, status: 'healthy', bulletin: true };
  return (await nodeRequest(na, '/heartbeat', key, beat)).body.bulletin;
}

const ending = ({ certId }: TestNode) => ({ cert_id: certId, reason: 'superseded' });

/** The outcomes of the checks of `doctor` that are about the key. */
async function keyChecks({ dataDir, address }: SignedNetwork): Promise<string[]> {
  const { stdout } = await runCommand([
    ...['doctor', '--data-dir', dataDir, '--signer', address, '--json'],
  ]);
  const { checks } = JSON.parse(stdout) as { checks: { check: string; outcome: string }[] };
  const found = checks.filter(({ check }) => check === 'signer' || check === 'authority_key');
  return found.map((finding) => `${finding.check} ${finding.outcome}`);
}

test('everything is signed by the other process, lists on their own thread or on that for long lists, and doctor reports whether it signs', async () => {
  const network = signedNetwork();
  assert.deepEqual(await keyChecks(network), ['authority_key ok', 'signer wrong']);
  const signer = await startSigner(network);
  assert.deepEqual(await keyChecks(network), ['authority_key ok', 'signer ok']);
  for (const listThreadFrom of [null, 1]) {
    const na = await start(network, listThreadFrom === null ? {} : { listThreadFrom });
    try {
      const [node, other] = [await joinedNode(na), await joinedNode(na)];
      const renewed = await nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
      assert.equal(outcome(renewed), '200');
      assert.ok(verifies(parsed(renewed), na.audience));
      assert.equal(outcome(await operate(na, '/admin/revoke', ending(other))), '200');
      const crl = parsed(await get(na, '/crl'));
      assert.ok(verifies(crl, na.audience));
      assert.match(canonicalJson(crl), new RegExp(other.certId));
      const attested = parsed(await attest(na));
      assert.ok(verifies(attested, na.audience));
      assert.equal(outcome(await revokeAttestation(na, attested.attestation_id)), '200');
      assert.ok(verifies(parsed(await get(na, '/sovereign-revocation-feed')), na.audience));
      assert.ok(verifies(parsed(await recognize(na)), na.audience));
      assert.ok(verifies(parsed(await get(na, '/policy')), na.audience));
      assert.equal((await bulletinFor(na, node)).crl_sequence, crl.sequence);
      assert.equal(await enrollment(na), 'open');
      assert.equal(await metricOf(na, 'mesh_na_signer_available'), 1);
    } finally {
      await na.stop();
    }
  }
  await signer.end('SIGTERM');
  for (const kind of ['join_certificate', 'revocation_list', 'revocation_feed', 'bulletin']) {
    assert.match(
      signer.output(),
      new RegExp(`INFO mesh\\.signer Signed ${kind}: \\d+, bytes: \\d+`),
    );
  }
  assert.doesNotMatch(signer.output(), /Signed other/);
  assert.ok(!existsSync(network.path), 'the socket is gone');
});

suite('an authority whose signer', { concurrency: false }, () => {
  const network = signedNetwork();
  const apart = dirname(network.keyFile);
  const [head, backup] = [join(apart, 'head'), join(apart, 'made.backup')];
  let na: TestAuthority;
  let signer: RunningSigner;
  let node: TestNode;
  let other: TestNode;

  before(async () => {
    const starting = start(network, { flags: { headFile: [head], newHead: true } });
    signer = await startSigner(network);
    na = await starting;
  });
  after(async () => {
    signer.process.kill('SIGCONT');
    await na.stop();
    await signer.end('SIGTERM');
  });

  test('is started at the same time waits for it', async () => {
    assert.equal(await enrollment(na), 'open');
    [node, other] = [await joinedNode(na), await joinedNode(na)];
  });

  test('is there uses it for head files and backups too', async () => {
    assert.equal(outcome(await operate(na, '/admin/revoke', ending(await joinedNode(na)))), '200');
    const flags = ['--data-dir', network.dataDir, '--signer', network.address];
    const made = await runCommand(['backup', 'create', ...flags, '--to', backup]);
    assert.equal(made.code, 0, made.stderr);
    assert.equal((await runCommand(['backup', 'verify', backup])).code, 0);
    assert.match(readFileSync(head, 'utf8'), /"crl_sequence":1/);
  });

  test('hangs stops for a second, once', async () => {
    signer.process.kill('SIGSTOP');
    const renewal = () => nodeRequest(na, '/renew', node.key, { cert_id: node.certId });
    const waits: number[] = [];
    for (let times = 0; times < 20; times += 1) {
      const began = performance.now();
      assert.equal(outcome(await renewal()), UNSIGNED);
      waits.push(performance.now() - began);
    }
    assert.ok(Math.min(...waits) < 1000, `only the first waits for the signer: ${waits}`);
    assert.equal(outcome(await heartbeat(na, node)), '200');
    signer.process.kill('SIGCONT');
    await until(async () => outcome(await renewal()) === '200');
    assert.notEqual(await metricOf(na, 'mesh_na_signer_failures_total'), 0);
  });

  test('is gone issues, renews and revokes nothing, and continues with everything else until it is back', async () => {
    const token = await invite(na);
    const bulletin = await bulletinFor(na, node);
    const { attestation_id } = await issued(attest(na, { issuer_sovereign_id: 'beta' }));

    await signer.end('SIGKILL');
    await until(async () => (await enrollment(na)) === 'signer_unavailable');
    const newcomer = signedByNode(na, '/join', newKey(), { invite_token: token });
    assert.equal(outcome(await sendSigned(na, newcomer)), UNSIGNED);
    const renewal = signedByNode(na, '/renew', node.key, { cert_id: node.certId });
    assert.equal(outcome(await sendSigned(na, renewal)), UNSIGNED);
    assert.equal(outcome(await operate(na, '/admin/revoke', ending(other))), UNSIGNED);
    assert.equal(outcome(await attest(na)), UNSIGNED);
    assert.equal(outcome(await recognize(na)), UNSIGNED);
    assert.equal(outcome(await revokeAttestation(na, attestation_id)), UNSIGNED);
    const key = { key_id: 'ops-new', public_key: newKey().publicKey, tier: 'standard' };
    assert.equal(outcome(await operate(na, '/admin/operator-keys', key)), UNSIGNED);

    assert.equal(outcome(await heartbeat(na, other)), '200', 'it is not revoked');
    assert.deepEqual(await bulletinFor(na, node), bulletin, 'the last one that was signed');
    assert.equal(outcome(await operate(na, '/admin/invite')), '200');
    const before = parsed(await get(na, '/crl'));
    na.clock.advance(13 * HOUR);
    assert.deepEqual(parsed(await get(na, '/crl')), before, 'a newer one cannot be signed');
    await na.renewLists();
    assert.equal((await get(na, '/readyz')).status, 200);
    assert.equal(await metricOf(na, 'mesh_na_posture_finding{rule="signer"}'), 2);
    assert.match(na.logLines.join(''), /ERROR mesh\.signer The signer at unix:\S+ does not sign: /);
    assert.doesNotMatch(na.logLines.join(''), /CRITICAL/);

    signer = await startSigner(network);
    await until(async () => (await enrollment(na)) === 'open');
    const late = signedByNode(na, '/join', newKey(), { invite_token: token });
    assert.equal(outcome(await sendSigned(na, late)), '200', 'the token is usable still');
    assert.equal(outcome(await operate(na, '/admin/revoke', ending(other))), '200');
    const after = parsed(await get(na, '/crl'));
    const sequence = Number(before.sequence) + 1;
    assert.equal(after.sequence, sequence, 'one, and not one for each refusal');
    assert.ok(verifies(after, na.audience));
    await na.renewLists();
    const { body: feed } = await get(na, '/sovereign-revocation-feed?issuer_sovereign_id=beta');
    assert.equal(feed.sequence, 0, 'nothing was ever revoked in this name');
  });

  test('is gone loses nothing when it stops', async () => {
    const written = readFileSync(head, 'utf8');
    await signer.end('SIGKILL');
    await until(async () => (await enrollment(na)) === 'signer_unavailable');
    assert.equal(outcome(await operate(na, '/admin/invite')), '200');
    await na.stop();
    assert.equal(
      readFileSync(head, 'utf8'),
      written,
      'as after a crash, it is older than the state',
    );

    signer = await startSigner(network);
    na = await start(network, { clock: na.clock, flags: { headFile: [head] } });
    assert.notEqual(readFileSync(head, 'utf8'), written);
    await na.stop();
    await signer.end('SIGTERM');
    assert.match(signer.output(), /Signed state_head: /);
  });
});

test('a refused rollback cancels nothing, also in the audit log', async () => {
  const network = signedNetwork();
  const { signer: to, file } = nextKey(network.keyFile, () => randomBytes(32));
  const signer = await startSigner(network, ['--next-key', file]);
  const na = await start(network);
  try {
    const from = signerFromSeed(readKeyFile(network.keyFile));
    assert.equal(outcome(await stage(na, await succession(na, { from, to }))), '200');
    await activate(na);
    na.clock.advance(1);
    const staged = await stage(na, await succession(na, { from: to, to: newKey() }));
    assert.equal(outcome(staged), '200');
    await signer.end('SIGKILL');
    await until(async () => (await enrollment(na)) === 'signer_unavailable');
    assert.equal(outcome(await step(na, 'roll-back')), UNSIGNED);
    assert.equal((await get(na, '/authority-keys')).body.successions.length, 2);
    const types = auditEvents(na).map(({ type }) => type);
    assert.ok(!types.includes('authority_succession_canceled'), types.join());
  } finally {
    await na.stop();
  }
});

/** Signs correctly unless a fault is set. */
interface Pretender {
  readonly server: Server;
  /** How it answers requests to sign, after it has proved its key. */
  answer: (response: ServerResponse, right: string) => unknown;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function pretend(
  { keyFile, path }: SignedNetwork,
  held = readKeyFile(keyFile),
): Promise<Pretender> {
  const key = signerFromSeed(held);
  const rightly = (response: ServerResponse, signature: string) => response.end(signature);
  const server = createServer({ keepAliveTimeout: 0 }, async (asked, response) => {
    if (asked.url === '/keys') {
      response.end(key.publicKey);
      return;
    }
    assert.equal(asked.headers[KEY_HEADER], key.publicKey);
    const text = Buffer.concat(await asked.toArray());
    const signature = key.sign(text);
    if (kindOf(text) === 'challenge') rightly(response, signature);
    else pretender.answer(response, signature);
  });
  const pretender: Pretender = { server, answer: rightly };
  await new Promise<void>((resolve) => server.listen(path, resolve));
  chmodSync(path, 0o600);
  return pretender;
}

const NOT_VERIFIED = /does not sign: it answered with a signature that does not verify/;

const WRONG_ANSWERS: readonly (readonly [how: string, Pretender['answer'], said: RegExp])[] = [
  [
    'with another signature',
    (response, right) => {
      const other = Buffer.from(right, 'base64');
      other[0] = (other[0] ?? 0) ^ 1;
      response.end(other.toString('base64'));
    },
    NOT_VERIFIED,
  ],
  [
    'with a shorter one',
    (response, right) => {
      const shorter = Buffer.from(right, 'base64').subarray(1).toString('base64');
      response.end(shorter);
    },
    NOT_VERIFIED,
  ],
  ['by what it was not asked', (response) => response.end('<html>'), NOT_VERIFIED],
  [
    'by a failure',
    (response) => response.writeHead(500).end('failed'),
    /does not sign: it answered with the status 500/,
  ],
  [
    'with more than fits',
    (response) => response.end(' '.repeat(4097)),
    /does not sign: its answer is too long/,
  ],
  ['by a refusal', (response) => response.writeHead(403).end('not\ntoday'), /refuses: not\?today/],
  [
    'by what is not HTTP',
    (response) => response.socket?.end('not HTTP'),
    /does not sign: Parse Error: Expected HTTP\//,
  ],
  [
    'by hanging up',
    (response) => response.socket?.destroy(),
    /does not sign: it has closed the connection/,
  ],
];

test('a wrong answer is not used, the log says what is wrong, and the next right answer is used', async () => {
  const network = signedNetwork();
  const pretender = await pretend(network);
  const environment = { ...NO_LIMITS, MESH_SIGNER: network.address };
  const server = await startChildServer(network.dataDir, { environment });
  const { na } = server;
  const rightly = pretender.answer;
  const node: TestNode = await joinedNode(na);
  const attested = async () => outcome(await attest(na));
  assert.equal(outcome(await heartbeat(na, node)), '200');
  for (const [how, answer] of WRONG_ANSWERS) {
    pretender.answer = answer;
    assert.equal(await attested(), UNSIGNED, how);
    pretender.answer = rightly;
    await until(async () => (await attested()) === '200');
  }
  const { stderr } = await server.end('SIGTERM');
  await closed(pretender.server);
  for (const [how, , said] of WRONG_ANSWERS) assert.match(stderr, said, how);
});

test('a start is refused in one sentence if it cannot be the right signer', async () => {
  const network = signedNetwork();
  const { dataDir, keyFile, path, address } = network;
  const load = (settings: object) => loadConfig({ dataDir, signer: address, ...settings }, {}, 0);
  assert.throws(() => load({ signer: 'tcp:1' }), /--signer must be a socket such as unix:/);
  const both = /^Error: --na-private-key cannot be combined with --signer, which provides the key$/;
  assert.throws(() => load({ naPrivateKey: keyFile }), both);
  const refused = (problem: RegExp) =>
    assert.rejects(start(network), ({ message }: Error) => {
      assert.match(message, problem);
      return !message.includes('\n');
    });
  await refused(/^The signer at unix:\S+ does not sign: there is no \S+$/);
  writeFileSync(path, '');
  await refused(/does not sign: \S+ is not a socket$/);
  rmSync(path);
  const stranger = await pretend(network, Buffer.alloc(32, 7));
  await refused(
    /does not sign: it holds \S+, but not the authority’s key \S+: start it with that key, or configure the genesis block of /,
  );
  await closed(stranger.server);
  const open = await pretend(network);
  chmodSync(path, 0o666);
  await refused(/does not sign: every user of this machine can use \S+; run chmod o= \S+$/);
  await closed(open.server);
});

/** A signer in this process. */
function serve(path: string, given: Partial<SignerServiceOptions> = {}) {
  return startSignerService({
    path,
    isForGroup: false,
    signer: newKey(),
    second: null,
    signed: () => undefined,
    misused: () => undefined,
    ...given,
  });
}

test('the socket is for its owner, or also for its group, and an abandoned one is replaced', async () => {
  const { path } = signedNetwork();
  const mode = () => statSync(path).mode & 0o777;
  const first = await serve(path);
  assert.equal(mode(), 0o600);
  await assert.rejects(serve(path), /^Error: Another process is listening at \S+$/);
  // What a killed signer leaves behind.
  renameSync(path, `${path}-kept`);
  await first.close();
  renameSync(`${path}-kept`, path);
  const second = await serve(path, { isForGroup: true });
  assert.equal(mode(), 0o660);
  await second.close();
  assert.ok(!existsSync(path));
  writeFileSync(path, 'kept');
  await assert.rejects(serve(path), /is not a socket, so it is not replaced$/);
  assert.equal(readFileSync(path, 'utf8'), 'kept');
});

test('a key that others can read, and an invalid address, are refused', async () => {
  const network = signedNetwork();
  chmodSync(network.keyFile, 0o644);
  const exposed = await refusedSigner(network);
  assert.match(exposed, /can be opened by other users; run chmod 600/);
  const elsewhere = await refusedSigner({ ...network, address: 'socket' });
  assert.match(elsewhere, /--listen must be unix:/);
});

test('signatures that are asked for during a probe, or each other, come over the same connection', async (t) => {
  const { path } = signedNetwork();
  const signer = newKey();
  const service = await serve(path, { signer });
  t.after(() => service.close());
  const publicKeys = [signer.publicKey];
  const connection = await connectSigner({
    path,
    publicKeys,
    verify: verifySignature,
    nonce: () => randomBytes(32),
  });
  const texts = ['first', 'second'].map((text) => Buffer.from(text));
  const [, ...signatures] = await Promise.all([
    connection.probe(publicKeys),
    ...texts.map((text) => connection.sign(signer.publicKey, text)),
  ]);
  assert.deepEqual(
    signatures.map((signature) => signature.toString('base64')),
    texts.map((text) => signer.sign(text)),
  );
  connection.end('done');
  assert.equal(await connection.ended, 'done');
});

test('a long list that is to be signed while the signer restarts is signed once it is back', async () => {
  const { path } = signedNetwork();
  const signer = newKey();
  const first = await serve(path, { signer });
  let failed = (_cause: unknown): void => undefined;
  const failure = new Promise<never>((_, reject) => {
    failed = reject;
  });
  const keySource = { kind: 'signer', path } as const;
  const thread = startListThread(
    soleSigner(signer),
    () => keySource,
    (cause) => failed(cause),
  );
  await thread.ready;
  const list = thread.open('crl');
  await first.close();
  const head = { form: 'crl', crlId: 'x', issuedAt: 0, nextUpdate: 1, sequence: 7 } as const;
  const rendering = list.render({ ...head, digest: '' });
  const second = await serve(path, { signer });
  try {
    const { document } = await Promise.race([rendering, failure]);
    const crl = parseJson(Buffer.from(document.bytes).toString()) as JsonObject;
    assert.equal(Number(crl.sequence), 7);
    assert.ok(verifies(crl, signer.publicKey));
  } finally {
    await thread.close();
    await second.close();
  }
});

test('the vectors match a signer’s answers, byte for byte, and too long a text ends the connection', async () => {
  const network = signedNetwork();
  const { key, second, keys, both_keys, challenge, signatures, refusals, too_long } = vectors;
  writeFileSync(network.keyFile, `${key.seed_base64}\n`);
  const alone = await serve(network.path, { signer: signerFromSeed(readKeyFile(network.keyFile)) });
  await exchange(network.path, [keys]);
  await alone.close();
  const nextFile = nextKeyFile(network.keyFile);
  writeFileSync(nextFile, `${second.seed_base64}\n`, { mode: 0o600 });
  const signer = await startSigner(network, ['--next-key', nextFile]);
  await exchange(network.path, [both_keys, challenge, ...signatures, ...refusals, both_keys]);
  assert.equal(challengeText(Buffer.from(challenge.nonce_hex, 'hex')), challenge.text);

  for (const fields of [too_long.asked.headers, { 'Transfer-Encoding': 'chunked' }, null]) {
    const socket = connect(network.path);
    const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined).resume();
    const lines = Object.entries(fields ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
    const first = fields === null ? 'what?\r\n' : 'POST /sign HTTP/1.1\r\nHost: signer\r\n';
    socket.write(`${first}${lines.join('')}\r\n`);
    await ended;
  }
  await signer.end('SIGTERM');
  for (const problem of [
    'A text of 268435457 bytes was announced',
    'A text of unknown length was announced',
    'What arrived is not HTTP, or its head is too long',
  ]) {
    assert.ok(signer.output().includes(`WARNING mesh.signer ${problem}: connections ended: 1`));
  }
  assert.ok(signer.output().includes(`Signed join_certificate with ${key.public_base64}: 1`));
  for (const { public_base64 } of [key, second]) {
    assert.ok(signer.output().includes(`Signed revocation_list with ${public_base64}: 1`));
  }
});

/** Every request is on the same connection, and its body arrives byte by byte. */
async function exchange(socketPath: string, exchanges: readonly Exchange[]): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<unknown>();
  for (const { asked, text = '', answered } of exchanges) {
    const { method, target: path } = asked;
    const body = Buffer.from(text);
    const headers = { ...asked.headers, 'Content-Length': body.length };
    const answer = await new Promise<typeof answered>((resolve, reject) => {
      const sent = request({ agent, socketPath, method, path, headers }, async (response) => {
        sockets.add(response.socket);
        const received = Buffer.concat(await response.toArray()).toString();
        resolve({ status: response.statusCode ?? 0, body: received });
      });
      sent.on('error', reject);
      for (const byte of body) sent.write(Buffer.of(byte));
      sent.end();
    });
    assert.deepEqual(answer, answered);
  }
  assert.equal(sockets.size, 1);
  agent.destroy();
}

test('every record that an authority signs is recognized by its kind', () => {
  const kinds = new Set<string>();
  for (const file of ['golden-trust', 'own_wire_core', 'attestations', 'treaties']) {
    const text = readFileSync(new URL(`test/vectors/${file}.json`, PROJECT), 'utf8');
    for (const record of signedIn(parseJson(text))) {
      const signed = canonicalJson(record, 'signatures' in record ? 'signatures' : 'signature');
      kinds.add(kindOf(Buffer.from(signed)));
    }
  }
  for (const kind of OF_RECORDS) assert.ok(kinds.has(kind), kind);
});

test('succession statements, and bulletins that name them, are recognized too', () => {
  const read = readFileSync(new URL('test/vectors/authority-keys.json', PROJECT), 'utf8');
  const { statements, files } = JSON.parse(read).vectors;
  const kind = (text: string) => kindOf(Buffer.from(text));
  for (const { possession_text, signed_text } of statements) {
    assert.equal(kind(possession_text), 'key_possession');
    assert.equal(kind(signed_text), 'succession');
  }
  assert.equal(kind(canonicalJson(files.request, 'signatures')), 'succession_request');
  const bulletin = { authority_keys_digest: '', crl_digest: '', crl_sequence: 1, version: 1 };
  assert.equal(kind(canonicalJson(bulletin)), 'bulletin');
});

const OF_RECORDS = [
  ...['revocation_list', 'revocation_feed', 'attestation', 'treaty', 'agreement'],
  ...['offer', 'boundary_decision', 'commitment', 'nullifier', 'consensus', 'data_intent'],
  ...['data_license', 'trust_evidence', 'vote'],
];

/** Every record in a value that has a signature. */
function signedIn(value: unknown): JsonObject[] {
  if (typeof value !== 'object' || value === null) return [];
  const below = Object.values(value).flatMap(signedIn);
  const isSigned = 'signatures' in value || 'signature' in value;
  return isSigned ? [value as JsonObject, ...below] : below;
}
