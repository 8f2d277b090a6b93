/**
 * What happens to a request that another instance must answer: held, sent, sent again, or given up; and where instances
 * reach each other.
 */

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer as createHttpServer, type Server, type ServerResponse } from 'node:http';
import { connect as connectPlainly, createServer } from 'node:net';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { Dispatcher } from 'undici';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { createAuthoritySigner, heldHere } from '../src/base/signer/authority-signer.ts';
import { type CopyNotice, createCopies } from '../src/edge/forward/copies.ts';
import { type Attempt, createForwarding, type Forwarded } from '../src/edge/forward/forwarder.ts';
import { connectWithKey } from '../src/edge/forward/shared-key-tls.ts';
import type { SharedKey } from '../src/edge/forward/target.ts';
import { connectUpstream, type Lane, type Upstream } from '../src/edge/forward/upstream.ts';
import { passedHeaders, passing } from '../src/edge/http/passing.ts';
import { createRouter, isAnsweredElsewhere } from '../src/edge/request/route.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { SCRIPT, STYLE } from '../src/pages/assets.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { Refusal } from '../src/protocol/refusals.ts';
import { openGate } from '../src/server/forward/gate.ts';
import { createForwardKeys, linkSecret } from '../src/server/forward/keys.ts';
import { scratchFolder } from './support/folders.ts';

const ANSWERED: Attempt<string> = { kind: 'answered', answer: 'done' };
const NOT_BEGUN: Attempt<string> = { kind: 'not begun' };
const LOST: Attempt<string> = { kind: 'lost' };

/** A request that is sent to targets whose attempts are given, and what was sent. */
function requestTo(
  attempts: Readonly<Record<string, Attempt<string>>>,
  given: { isRead?: boolean; isRepeatable?: boolean; bytes?: number } = {},
) {
  const { isRead = false, isRepeatable = isRead, bytes = 0 } = given;
  const sent: string[] = [];
  const request: Forwarded<string, string> = {
    isRead,
    isRepeatable,
    bytes,
    isGone: () => false,
    async send(target, isRepeat) {
      sent.push(isRepeat ? `${target} again` : target);
      return attempts[target] ?? NOT_BEGUN;
    },
  };
  return { request, sent };
}

function setUp(holdMs = 3000) {
  let now = 0;
  const forwarding = createForwarding<string>({ holdMs, elapsed: () => now });
  return {
    ...forwarding,
    pass: (milliseconds: number) => {
      now += milliseconds;
    },
  };
}

/** Waits for what needs no timer: on a busy machine, held requests would be sent again before a test looks. */
async function withoutTimers(): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) await null;
}

test('a request is held while nobody is active, and goes to the instance that becomes so', async () => {
  const { forward, turnTo } = setUp();
  const { request, sent } = requestTo({ b: ANSWERED });
  const answer = forward(request);
  turnTo('a');
  await withoutTimers();
  assert.deepEqual(sent, ['a'], 'a stops, and has not begun it');
  turnTo('b');
  assert.equal(await answer, 'done');
  assert.deepEqual(sent, ['a', 'b'], 'it was never begun, so it is no repetition');
});

test('after the longest hold nothing was done, and a request is refused at once if none may be held', async () => {
  const { forward, pass } = setUp();
  const { request, sent } = requestTo({});
  const answer = forward(request);
  pass(3000);
  assert.equal(await answer, 'authority_unavailable');
  assert.equal(await setUp(0).forward(request), 'authority_unavailable');
  assert.deepEqual(sent, []);
});

test('a lost request is sent again if that is safe, and otherwise its outcome is unknown', async () => {
  const lost = { a: LOST, b: ANSWERED };
  for (const [what, given, expected, sent] of [
    ['a read', { isRead: true }, 'done', ['a', 'b again']],
    ['a command whose answer is kept', { isRepeatable: true }, 'done', ['a', 'b again']],
    ['any other command', {}, 'outcome_unknown', ['a']],
  ] as const) {
    const { forward, turnTo } = setUp();
    const made = requestTo(lost, given);
    turnTo('a');
    const answer = forward(made.request);
    await withoutTimers();
    turnTo('b');
    assert.equal(await answer, expected, what);
    assert.deepEqual(made.sent, sent, what);
  }
});

test('what may be sent twice changes nothing and spends no nonce, or gets its first answer', () => {
  for (const [method, isSigned, keepsAnswer, expected] of [
    ['GET', false, false, true],
    ['HEAD', false, false, true],
    ['GET', true, false, false],
    ['POST', true, true, true],
    ['POST', true, false, false],
    ['POST', false, false, false],
  ] as const) {
    const given = { method, isSigned, keepsAnswer, target: '/', headers: [], body: null };
    const request = { ...given, lane: 'public' as const, noted: () => null };
    const { isRepeatable } = passing(request, { res: { close() {} }, aborted: false });
    assert.equal(isRepeatable, expected, `${method} ${isSigned} ${keepsAnswer}`);
  }
});

test('a command that was lost, and then held too long, may have been carried out, and a read was not', async () => {
  for (const [isRead, expected] of [
    [false, 'outcome_unknown'],
    [true, 'authority_unavailable'],
  ] as const) {
    const { forward, turnTo, pass } = setUp();
    const { request } = requestTo({ a: LOST }, { isRead, isRepeatable: true });
    turnTo('a');
    const answer = forward(request);
    await withoutTimers();
    turnTo(null);
    pass(3000);
    assert.equal(await answer, expected);
  }
});

test('no more than 4,096 requests and 64 MiB are held, and a client that has left is not waited for', async () => {
  const { forward, pass } = setUp();
  const held = Array.from({ length: 4096 }, () => forward(requestTo({}).request));
  assert.equal(await forward(requestTo({}).request), 'authority_unavailable');
  pass(3000);
  assert.deepEqual([...new Set(await Promise.all(held))], ['authority_unavailable']);
  const large = setUp();
  const [first, second] = [40, 40].map((mib) =>
    large.forward(requestTo({}, { bytes: mib * 1024 ** 2 }).request),
  );
  assert.equal(await second, 'authority_unavailable');
  large.turnTo('a');
  large.pass(3000);
  assert.equal(await first, 'authority_unavailable');
  const { request } = requestTo({});
  assert.equal(await setUp().forward({ ...request, isGone: () => true }), 'authority_unavailable');
});

test('bodies that are on their way count as well, until they are answered', async () => {
  const { forward, turnTo } = setUp();
  turnTo('a');
  const bytes = 40 * 1024 ** 2;
  let answer = (_attempt: Attempt<string>): void => undefined;
  const slow = new Promise<Attempt<string>>((resolve) => {
    answer = resolve;
  });
  const first = forward({ ...requestTo({}, { bytes }).request, send: () => slow });
  const { request, sent } = requestTo({ a: ANSWERED }, { bytes });
  assert.equal(await forward(request), 'authority_unavailable');
  assert.deepEqual(sent, []);
  answer(ANSWERED);
  assert.equal(await first, 'done');
  assert.equal(await forward(request), 'done');
});

test('what is no valid HTTP is refused at once', async () => {
  const { forward, turnTo } = setUp();
  turnTo('a');
  const { request, sent } = requestTo({ a: { kind: 'invalid' } });
  assert.equal(await forward(request), 'bad_request');
  assert.deepEqual(sent, ['a']);
});

test('a head that the HTTP library of the active instance does not take is refused, and not sent again', async () => {
  const request = { method: 'GET', isSigned: false, keepsAnswer: false, target: '/', body: null };
  const sentWith = (lines: number, answers: readonly string[]) => {
    const headers = Array.from({ length: 2 * lines }, () => 'x');
    const passed = { ...request, headers, lane: 'public' as const, noted: () => null };
    const upstream = {
      isUp: () => true,
      dispatch(_given: unknown, _lane: string, handlers: Dispatcher.DispatchHandlers) {
        handlers.onConnect?.(() => undefined);
        const given = answers.map((text) => Buffer.from(text));
        handlers.onHeaders?.(431, given, () => undefined, '');
        handlers.onData?.(Buffer.from('<h1>Request Header Fields Too Large</h1>'));
        handlers.onComplete?.(null);
      },
    };
    const client = { res: { close() {} }, aborted: false };
    return passing(passed, client).send(upstream as unknown as Upstream, false);
  };
  const ofEdge = ['X-Request-ID', 'a', 'Content-Length', '40'];
  assert.equal((await sentWith(95, ofEdge)).kind, 'answered');
  assert.equal((await sentWith(96, ofEdge)).kind, 'invalid');
  assert.equal((await sentWith(1, ['Connection', 'close'])).kind, 'invalid');
});

test('a copy is in memory that is accounted for, and its bytes are given to other threads once', async () => {
  const given: CopyNotice[] = [];
  const copies = createCopies({ share: (copy) => given.push(copy), elapsed: () => 0 });
  const asked = { path: '/crl', etag: '"1"', isCompressed: false };
  const body = copies.note(200, { ...asked, since: 1000 });
  body?.add(Buffer.from('the list'));
  body?.complete();
  await new Promise(setImmediate);
  assert.equal(copies.note(200, { ...asked, since: 1999 }), null);
  assert.equal(copies.note(200, { ...asked, since: 2000 }), null);
  const [whole, confirmed] = given as [CopyNotice, CopyNotice];
  assert.equal(given.length, 2);
  assert.ok(whole.document?.bytes.buffer instanceof ArrayBuffer);
  assert.deepEqual(confirmed, { path: '/crl', etag: '"1"', since: 2000, document: null });
  const other = createCopies({ share: () => undefined, elapsed: () => 0 });
  other.take(confirmed);
  assert.equal(other.get('/crl'), undefined);
  for (const copy of [whole, confirmed, whole, { ...confirmed, etag: '"2"', since: 3000 }]) {
    other.take(copy);
  }
  assert.deepEqual(other.get('/crl'), copies.get('/crl'));
  assert.equal(other.get('/crl')?.since, 2000);
});

test('headers of one connection, and those that only instances may send, are not passed on', () => {
  const lines = [
    ['host', 'na.example'],
    ['connection', 'close'],
    ['transfer-encoding', 'chunked'],
    ['x-mesh-forwarded-for', '203.0.113.9'],
    ['x-mesh-base-url', 'https://elsewhere.example'],
    ['x-twice', 'a'],
    ['x-twice', 'b'],
    ['x-control', 'a\x7f'],
    ['x-utf-8', 'é→'],
  ].flat();
  assert.deepEqual(
    passedHeaders(lines, { remoteAddr: '192.0.2.1', baseUrl: 'https://na.example' }),
    [
      ['x-mesh-forwarded-for', '192.0.2.1'],
      ['x-mesh-base-url', 'https://na.example'],
      ['host', 'na.example'],
      ['x-twice', 'a'],
      ['x-twice', 'b'],
      ['x-utf-8', Buffer.from('é→').toString('latin1')],
    ].flat(),
  );
});

test('a standby answers probes, references and the files of its own pages, and forwards what it does not know', () => {
  const match = createRouter(ROUTES);
  const isForwarded = (path: string) => {
    const found = match('GET', path);
    assert.ok(typeof found === 'object' && 'route' in found, path);
    const edge = { instanceStatus: { isActive: () => false } } as never;
    return isAnsweredElsewhere(edge, { ...found, isRefused: false } as never);
  };
  const own = ['/healthz', '/readyz', '/health', '/metrics', '/api-reference', '/cli-reference'];
  for (const path of [...own, '/swagger.json', STYLE.path, SCRIPT.path]) {
    assert.equal(isForwarded(path), false, path);
  }
  const others = [STYLE, SCRIPT].map(({ path }) => path.replace(/[0-9a-f]{32}/, '0'.repeat(32)));
  for (const path of [...others, '/', '/crl', '/dashboard']) {
    assert.equal(isForwarded(path), true, path);
  }
});

// Where other instances reach this one: who gets through to an edge, and what strangers can do.

const folder = scratchFolder();
after(() => folder[Symbol.asyncDispose]());

const [FIRST, NEXT] = [1, 2].map((byte) => signerFromSeed(Buffer.alloc(32, byte))) as [
  ReturnType<typeof signerFromSeed>,
  ReturnType<typeof signerFromSeed>,
];
const KEYS: readonly SharedKey[] = [FIRST, NEXT].map((signer) => ({
  publicKey: signer.publicKey,
  secret: linkSecret(signer, 'a'),
}));
const [OLD, NEW] = KEYS as [SharedKey, SharedKey];

test('the secret belongs to one key and one network', () => {
  assert.deepEqual(linkSecret(FIRST, 'a'), OLD.secret);
  assert.equal(OLD.secret.byteLength, 32);
  assert.notDeepEqual(linkSecret(FIRST, 'b'), OLD.secret);
  assert.notDeepEqual(NEW.secret, OLD.secret);
});

test('a key whose secret cannot be derived is neither accepted nor offered, and the one before is still known', () => {
  let isAway = false;
  const [first, next] = [FIRST, NEXT].map(({ publicKey, sign }) => ({
    publicKey,
    sign(text: string | Uint8Array) {
      if (isAway) throw new Refusal('signer_unavailable');
      return sign(text);
    },
  })) as [typeof FIRST, typeof FIRST];
  const { publicKey } = first;
  const signer = createAuthoritySigner(
    heldHere(() => [first, next]),
    { publicKey, keyId: publicKey },
  );
  const genesis = { network_name: 'alpha', root_public_key: 'root' } as GenesisBlock;
  const keys = createForwardKeys(signer, genesis);
  const names = (shared: readonly SharedKey[]) => shared.map((key) => key.publicKey);
  assert.deepEqual(names(keys.accepted()), [publicKey], 'the next one does not sign yet');
  isAway = true;
  signer.use([
    { from: -Infinity, current: publicKey, previous: null },
    { from: 1, current: next.publicKey, previous: null },
  ]);
  assert.deepEqual(names(keys.accepted()), []);
  assert.deepEqual(names(keys.offered()), [publicKey], 'what was derived before');
  isAway = false;
  assert.deepEqual(names(keys.accepted()), [next.publicKey]);
  assert.equal(keys.offered()[0]?.publicKey, next.publicKey);
  keys.know([
    { public_key: publicKey, state: 'distrusted' } as never,
    { public_key: next.publicKey, state: 'current' } as never,
  ]);
  assert.deepEqual(names(keys.offered()), [next.publicKey]);
});

/** A gate before an edge that says what it got; `end` also runs after the test. */
async function openTestGate(t: TestContext, name: string) {
  const path = join(folder.path, name);
  const edge = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => socket.write(`got ${bytes}`));
  }).listen(path);
  await once(edge, 'listening');
  const gate = await openGate({ host: '127.0.0.1', port: 0, sockets: [path], keys: [OLD] });
  let ended: Promise<void> | undefined;
  function end(): Promise<void> {
    edge.close();
    ended ??= gate.close(0);
    return ended;
  }
  t.after(end);
  return {
    gate,
    port: Number(gate.address.split(':')[1]),
    connect: (key: SharedKey) =>
      new Promise<TLSSocket | null>((resolve) => {
        connectWithKey(gate.address, key, (_cause, socket) => resolve(socket));
      }),
    end,
  };
}

test('who has the key gets through with TLS 1.3 and an ephemeral exchange, a stranger gets nothing', async (t) => {
  const { connect, end } = await openTestGate(t, 'one');
  const socket = await connect(OLD);
  assert.ok(socket !== null);
  assert.deepEqual(
    [socket.getProtocol(), socket.getCipher().name],
    ['TLSv1.3', 'TLS_AES_128_GCM_SHA256'],
  );
  // OpenSSL 3.5 exchanges keys by X25519 together with ML-KEM, which Node.js 22 does not name.
  const named = process.version.startsWith('v22.') ? ['ECDH', undefined] : ['ECDH', 'TLSGroup'];
  const { type } = socket.getEphemeralKeyInfo() as { type?: string };
  assert.ok(named.includes(type), type);
  socket.write('a request');
  assert.equal(String((await once(socket, 'data'))[0]), 'got a request');
  assert.equal(await connect(NEW), null, 'a key that does not sign');
  assert.equal(await connect({ ...OLD, secret: NEW.secret }), null, 'the name of a key alone');
  await Promise.all([end(), once(socket, 'close')]);
});

test('a connection ends when its key is not accepted any more', async (t) => {
  const { gate, connect } = await openTestGate(t, 'two');
  const socket = await connect(OLD);
  assert.ok(socket !== null);
  const closed = once(socket.resume(), 'close');
  gate.accept([NEW]);
  await closed;
  assert.equal(await connect(OLD), null);
  const next = await connect(NEW);
  assert.ok(next !== null);
  next.destroy();
});

test('strangers who keep connections open do not keep instances waiting, and only a limited number of theirs stay', async (t) => {
  const { port, connect } = await openTestGate(t, 'three');
  const strangers = Array.from({ length: 70 }, () => connectPlainly(port, '127.0.0.1'));
  let left = strangers.length;
  const fewAreLeft = new Promise<void>((resolve) => {
    for (const stranger of strangers) {
      stranger.on('error', () => undefined);
      stranger.once('close', () => {
        left -= 1;
        if (left <= 32) resolve();
      });
    }
  });
  await Promise.all(strangers.map((stranger) => once(stranger, 'connect')));
  const socket = await connect(OLD);
  assert.ok(socket !== null, 'it gets through');
  await fewAreLeft;
  assert.ok(left > 0, 'they are dropped for others alone');
  for (const stranger of strangers) stranger.destroy();
  socket.destroy();
});

/** An upstream that has reached the server, which listens at a socket of this name behind a gate. */
async function linkedTo(edge: Server, name: string) {
  const path = join(folder.path, name);
  await once(edge.listen(path), 'listening');
  const gate = await openGate({ host: '127.0.0.1', port: 0, sockets: [path], keys: [OLD] });
  const seen = new EventEmitter();
  const upstream = connectUpstream({
    target: { term: 1, address: gate.address, keys: [OLD] },
    reached: () => seen.emit('reached'),
    answered: () => undefined,
    elapsed: () => performance.now(),
  });
  await once(seen, 'reached');
  return { gate, upstream };
}

test('a request does not wait for the connections of streams, which end soon after them', async (t) => {
  let streams = 0;
  let open = 0;
  const edge = createHttpServer(({ url }, response) => {
    if (url === '/stream') streams += 1;
    response.end('answered');
  });
  edge.on('connection', (socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
  });
  const { gate, upstream } = await linkedTo(edge, 'five');
  const STREAMS = 400;
  const ended = Array.from({ length: STREAMS }, () => {
    const stream = { onConnect() {}, onHeaders: () => true, onData: () => true, onError() {} };
    return new Promise<void>((done) =>
      upstream.dispatch({ path: '/stream', method: 'GET' }, 'lasting', {
        ...stream,
        onComplete: () => done(),
      }),
    );
  });
  assert.deepEqual(await upstream.read('/', 60_000), { status: 200, body: 'answered' });
  t.diagnostic(`${streams} streams before it`);
  assert.ok(streams < 100, `${streams} of ${STREAMS} streams before it`);
  await Promise.all(ended);
  t.diagnostic(`${open} connections are open`);
  assert.ok(open < 300, `${open} connections`);
  upstream.close();
  await gate.close(0);
  edge.close();
});

test('a node and an operator do not wait for connections that the public holds', async () => {
  const edge = createHttpServer(({ url }, response) => {
    if (url !== '/slow') response.end();
  });
  const { gate, upstream } = await linkedTo(edge, 'six');
  const send = (path: string, lane: Lane) =>
    new Promise<void>((done) => {
      upstream.dispatch({ path, method: 'GET' }, lane, {
        onConnect() {},
        onHeaders: () => true,
        onData: () => true,
        onComplete: () => done(),
        onError() {},
      });
    });
  for (let count = 0; count < 300; count += 1) void send('/slow', 'public');
  for (const lane of ['node', 'operator'] as const) await send('/', lane);
  upstream.close();
  await gate.close(0);
  edge.close();
});

test('an instance that stops still answers what others had sent, and they end their connections then', async () => {
  const seen = new EventEmitter();
  const edge = createHttpServer(({ url }, response) => {
    if (url === '/healthz') response.end();
    else seen.emit('in work', response);
  });
  const { gate, upstream } = await linkedTo(edge, 'four');
  const answer = upstream.read('/slow', 60_000);
  const [response] = (await once(seen, 'in work')) as [ServerResponse];
  const closed = gate.close(60_000);
  upstream.close();
  assert.equal(await upstream.read('/more', 60_000), null, 'it takes nothing more');
  response.end('late');
  assert.deepEqual(await answer, { status: 200, body: 'late' });
  await closed;
  edge.close();
});
