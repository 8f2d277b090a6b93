/** Answers that exceed the buffers of a connection, and slow readers. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type PieceWriter, sendReply } from '../src/edge/http/send-reply.ts';
import type { PiecewiseBody } from '../src/edge/reply.ts';
import { startTestAuthority } from './support/authority.ts';
import { rawConnection } from './support/raw-http.ts';
import { sendRaw } from './support/requests.ts';
import { listenApp } from './support/uws-app.ts';

const MIB = 1024 * 1024;
const REQUEST = { id: 'id', sentMethod: 'GET' };

const REPLY = {
  status: 200,
  contentType: 'text/plain',
  headerLines: 'Cache-Control: no-store',
  refusal: null,
  contentSecurityPolicy: null,
  body: '',
};

interface Sender {
  readonly port: number;
  /** The number of answers that were started; `over` counts those that are finished. */
  readonly begun: number;
  readonly over: number;
  /** The number of connections that ended before their answer was read. */
  readonly cut: number;
  [Symbol.dispose](): void;
}

/** A real server that answers every request with such a body. */
async function sender(makeBody: () => string | Uint8Array | PiecewiseBody): Promise<Sender> {
  let begun = 0;
  let over = 0;
  let cut = 0;
  const app = await listenApp((app) =>
    app.get('/*', (res) => {
      const writer: PieceWriter = { res, aborted: false, onGone: null };
      res.onAborted(() => {
        writer.aborted = true;
        cut += 1;
        writer.onGone?.();
      });
      begun += 1;
      const sent = sendReply(writer, REQUEST, { ...REPLY, body: makeBody() }, 'stays', nextTurn);
      void Promise.resolve(sent).then(() => {
        over += 1;
      });
    }),
  );
  return {
    port: app.port,
    get begun() {
      return begun;
    },
    get over() {
      return over;
    },
    get cut() {
      return cut;
    },
    [Symbol.dispose]: app[Symbol.dispose],
  };
}

/** Sends a request, and reads nothing until the test does. */
async function reluctant({ port }: Sender): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.pause();
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write('GET / HTTP/1.1\r\nHost: na\r\n\r\n');
  return socket;
}

async function bodyOf(socket: Socket, length: number): Promise<string> {
  const chunks: Buffer[] = [];
  let received = 0;
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    received += chunk.length;
    if (received >= length && headLength(Buffer.concat(chunks)) + length <= received) {
      socket.emit('whole');
    }
  });
  const whole = once(socket, 'whole');
  socket.resume();
  await whole;
  const bytes = Buffer.concat(chunks);
  return digestOf(bytes.subarray(headLength(bytes)));
}

function headLength(bytes: Buffer): number {
  return bytes.indexOf('\r\n\r\n') + 4;
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function sharedBytes(length: number): Uint8Array {
  const bytes = new Uint8Array(new SharedArrayBuffer(length));
  for (let index = 0; index < length; index += 1) bytes[index] = index % 251;
  return bytes;
}

const LONG = 'x'.repeat(40 * MIB);

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

test('20 readers that do not read share the bytes of one answer', async () => {
  const bytes = sharedBytes(20 * MIB);
  using server = await sender(() => bytes);
  const before = process.memoryUsage().rss;
  const sockets = await Promise.all(Array.from({ length: 20 }, () => reluctant(server)));
  await until(() => server.begun === 20);
  const grown = (process.memoryUsage().rss - before) / MIB;
  assert.ok(grown < 150, `${grown} MiB`);
  for (const socket of sockets) socket.destroy();
  await until(() => server.over === 20);
});

test('a reader gets what it requested, even if the bytes were replaced meanwhile', async () => {
  const bytes = sharedBytes(20 * MIB);
  const expected = digestOf(bytes);
  using server = await sender(() => bytes);
  const readers = [await reluctant(server), await reluctant(server)];
  await until(() => server.begun === 2);
  bytes.fill(0);
  for (const reader of readers) assert.equal(await bodyOf(reader, bytes.length), expected);
  await until(() => server.over === 2);
  for (const reader of readers) reader.destroy();
});

test('a long text arrives whole, and its connection continues', async () => {
  const text = 'é✓'.repeat(2 * MIB);
  const bytes = Buffer.from(text);
  using server = await sender(() => text);
  const reader = await reluctant(server);
  assert.equal(await bodyOf(reader, bytes.length), digestOf(bytes));
  reader.removeAllListeners('data');
  reader.pause();
  reader.write('GET / HTTP/1.1\r\nHost: na\r\n\r\n');
  assert.equal(await bodyOf(reader, bytes.length), digestOf(bytes));
  reader.destroy();
});

test('a client that keeps requesting and reads nothing is disconnected', async () => {
  using server = await sender(() => Buffer.alloc(20 * 1024));
  const reader = await reluctant(server);
  let asked = 1;
  for (; asked < 2000 && server.cut === 0; asked += 1) {
    await until(() => server.cut > 0 || server.begun === asked);
    reader.write('GET / HTTP/1.1\r\nHost: na\r\n\r\n');
  }
  assert.equal(server.cut, 1, `${asked} answers wait for it`);
  reader.destroy();
});

for (const [kind, makeBody] of [
  ['different bodies', () => LONG],
  ['bodies in pieces', (): PiecewiseBody => ({ next: async () => LONG, abandon: () => undefined })],
] as const) {
  test(`of many slow readers of ${kind}, the earliest make room for the others`, async () => {
    using server = await sender(makeBody);
    const readers: Socket[] = [];
    for (let count = 1; count <= 6; count += 1) {
      readers.push(await reluctant(server));
      await until(() => server.begun === count);
    }
    for (let turn = 0; turn < 10; turn += 1) await nextTurn();
    assert.equal(server.cut, 3);
    for (const reader of readers) reader.destroy();
    await until(() => server.cut === 6 && server.over === 6);
  });
}

test('a large document that the client already has is not sent again', async () => {
  const environment = { MESH_PUBLIC_URL: 'http://na.example' };
  await using na = await startTestAuthority({ environment });
  const whole = await sendRaw(na, 'GET', '/swagger.json');
  assert.ok(whole.text.length > 64 * 1024);
  using connection = await rawConnection(na.url);
  const ask = (etag: string) =>
    connection.write(`GET /swagger.json HTTP/1.1\r\nHost: na\r\nIf-None-Match: ${etag}\r\n\r\n`);
  ask(whole.headers.get('etag') ?? '');
  await connection.until('\r\n\r\n');
  ask('"another"');
  // The last chunk is empty.
  const received = await connection.until('\r\n0\r\n\r\n');
  assert.match(received, /^HTTP\/1\.1 304 [^\r]*\r\n([^\r]+\r\n)+\r\nHTTP\/1\.1 200 /);
});
