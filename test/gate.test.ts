/** Where other instances reach this one: who gets through to an edge, and what strangers can do. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { connect as connectPlainly, createServer } from 'node:net';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { signerFromSeed } from '../src/base/crypto/ed25519.ts';
import { createAuthoritySigner, heldHere } from '../src/base/signer/authority-signer.ts';
import { connectWithKey } from '../src/edge/forward/shared-key-tls.ts';
import type { SharedKey } from '../src/edge/forward/target.ts';
import { connectUpstream } from '../src/edge/forward/upstream.ts';
import type { GenesisBlock } from '../src/protocol/records/genesis.ts';
import { Refusal } from '../src/protocol/refusals.ts';
import { openGate } from '../src/server/forward/gate.ts';
import { createForwardKeys, linkSecret } from '../src/server/forward/keys.ts';
import { scratchFolder } from './support/folders.ts';

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
async function setUp(t: TestContext, name: string) {
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
  const { connect, end } = await setUp(t, 'one');
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
  const { gate, connect } = await setUp(t, 'two');
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
  const { port, connect } = await setUp(t, 'three');
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

test('an instance that stops still answers what others had sent, and they end their connections then', async () => {
  const path = join(folder.path, 'four');
  const seen = new EventEmitter();
  const edge = createHttpServer(({ url }, response) => {
    if (url === '/healthz') response.end();
    else seen.emit('in work', response);
  }).listen(path);
  await once(edge, 'listening');
  const gate = await openGate({ host: '127.0.0.1', port: 0, sockets: [path], keys: [OLD] });
  const upstream = connectUpstream({
    target: { term: 1, address: gate.address, keys: [OLD] },
    reached: () => seen.emit('reached'),
    answered: () => undefined,
    elapsed: () => performance.now(),
  });
  await once(seen, 'reached');
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
