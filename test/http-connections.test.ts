/** Connections: how many there are, from whom, and the bodies and answers that one of them carries. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { type Listener, openListener } from '../src/edge/http/listener.ts';
import { type Closing, type PieceWriter, sendReply } from '../src/edge/http/send-reply.ts';
import { createUploads, type UploadLimits, type Uploads } from '../src/edge/http/uploads.ts';
import type { PiecewiseBody, Reply } from '../src/edge/reply.ts';
import type { ReceivedBody } from '../src/edge/request/parse.ts';
import { createPeers } from '../src/edge/request/request-head.ts';
import { connectionsPerThread } from '../src/server/front.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { ownPort } from './support/own-port.ts';
import { type RawConnection, rawConnection } from './support/raw-http.ts';
import { until } from './support/until.ts';
import { listenApp } from './support/uws-app.ts';

const shared = sharedAuthority();
const behindProxy = sharedAuthority({ environment: { MESH_PROXY_HOPS: '1' } });

test('a connection continues after HEAD, 60 times of 60', async () => {
  const na = await shared();
  using connection = await rawConnection(na.url);
  for (let round = 0; round < 60; round += 1) {
    const id = `head-${round}`;
    connection.write(`HEAD /genesis HTTP/1.1\r\nHost: na\r\nX-Request-ID: ${id}\r\n\r\n`);
    await connection.until(new RegExp(`X-Request-ID: ${id}\r\n(.+\r\n)*\r\n$`));
  }
  const heads = connection.received().split('\r\n\r\n').slice(0, -1);
  assert.equal(heads.length, 60);
  for (const head of heads) {
    assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
    assert.equal(head.match(/Content-Length: [1-9]\d*/gi)?.length, 1);
  }
  connection.write('GET /healthz HTTP/1.1\r\nHost: na\r\n\r\n');
  assert.match(await connection.until('"status"'), /"status"/);
});

test('a connection continues after a HEAD that is refused', async () => {
  const na = await shared();
  for (const [path, status] of [
    ['/nowhere', 404],
    ['/join', 405],
  ] as const) {
    using connection = await rawConnection(na.url);
    connection.write(`HEAD ${path} HTTP/1.1\r\nHost: na\r\n\r\n`);
    assert.match(await connection.until('\r\n\r\n'), new RegExp(`^HTTP/1\\.1 ${status} `));
    connection.write('GET /healthz HTTP/1.1\r\nHost: na\r\n\r\n');
    assert.match(await connection.until('"status"'), /"status"/);
  }
});

for (const [name, lines, body] of [
  ['a Transfer-Encoding that only begins like chunked', ['Transfer-Encoding: chunkedx'], chunks()],
  ['two codings', ['Transfer-Encoding: gzip, chunked'], chunks()],
  ['Transfer-Encoding: identity', ['Transfer-Encoding: identity'], 'abc'],
  ['differing Content-Length lines', ['Content-Length: 3', 'Content-Length: 5'], 'abcde'],
  ['two Transfer-Encoding lines', ['Transfer-Encoding: chunked', 'Transfer-Encoding: x'], chunks()],
  ['both lengths', ['Transfer-Encoding: chunked', 'Content-Length: 3'], chunks()],
] as const) {
  test(`a request with ${name} is refused behind a proxy, and its connection ends`, async () => {
    const na = await behindProxy();
    for (const start of ['POST /join', 'GET /healthz', 'POST /nowhere', 'HEAD /genesis']) {
      using connection = await rawConnection(na.url);
      const head = [`${start} HTTP/1.1`, 'Host: na', ...lines].join('\r\n');
      connection.write(`${head}\r\n\r\n${body}`);
      const received = await connection.closed();
      assert.match(received, /^HTTP\/1\.1 400 /, start);
      assert.equal(received.match(/HTTP\/1\.1 /g)?.length, 1, received);
      assert.equal(received.match(/^Connection: close\r$/gm)?.length, 1, received);
    }
  });
}

test('what follows a refused HEAD on its connection is not answered', async () => {
  const na = await behindProxy();
  using connection = await rawConnection(na.url);
  const lengths = 'Content-Length: 0\r\nContent-Length: 36';
  connection.write(`HEAD /genesis HTTP/1.1\r\nHost: na\r\n${lengths}\r\n\r\n`);
  await connection.until('\r\n\r\n');
  connection.write('GET /healthz HTTP/1.1\r\nHost: na\r\n\r\n');
  const received = await connection.closed();
  assert.equal(received.match(/HTTP\/1\.1 /g)?.length, 1, received);
});

test('a client without a proxy cannot send transfer codings other than chunked either', async () => {
  const na = await shared();
  using connection = await rawConnection(na.url);
  connection.write(
    `POST /join HTTP/1.1\r\nHost: na\r\nTransfer-Encoding: chunkedx\r\n\r\n${chunks()}`,
  );
  const received = await connection.closed();
  assert.match(received, /^HTTP\/1\.1 400 [\s\S]*"bad_request"/);
});

function chunks(): string {
  return '3\r\nabc\r\n0\r\n\r\n';
}

let upgrades = 0;

/** Requests an upgrade and returns the answer. */
async function upgraded(na: TestAuthority, topic: string, lines: readonly string[]) {
  upgrades += 1;
  const id = `live-${upgrades}`;
  const connection = await rawConnection(na.url);
  const head = [
    `GET /live?topic=${topic} HTTP/1.1`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
    `X-Request-ID: ${id}`,
    ...lines,
  ];
  connection.write(`${head.join('\r\n')}\r\n\r\n`);
  const received = await connection.until('\r\n\r\n');
  await na.settle();
  const logged = na.logLines.find((line) => line.includes(`request_id=${id} `)) ?? '';
  connection.socket.destroy();
  return { id, received, status: Number(received.slice(9, 12)), logged };
}

test('a refused upgrade is answered with an envelope, and logged', async () => {
  const na = await shared();
  for (const [topic, lines, status, code] of [
    ['secrets', ['Host: na'], 400, 'bad_request'],
    ['dashboard', ['Host: na', 'Origin: http://evil.example'], 403, 'foreign_origin'],
  ] as const) {
    const { id, received, logged, ...answer } = await upgraded(na, topic, lines);
    assert.equal(answer.status, status);
    assert.match(received, new RegExp(`X-Request-ID: ${id}\r\n`));
    assert.match(received, new RegExp(`"code":"${code}".*"request_id":"${id}"`));
    assert.match(logged, new RegExp(` GET /live ${status} `));
  }
});

test('an upgrade is logged', async () => {
  const na = await shared();
  const { status, logged } = await upgraded(na, 'dashboard', ['Host: na', 'Origin: http://na']);
  assert.equal(status, 101);
  assert.match(logged, / GET \/live 101 /);
});

for (const [name, environment, lines, expected] of [
  ['the public URL', { MESH_PUBLIC_URL: 'https://na.example' }, ['Host: inner:7443'], 101],
  [
    'the host a trusted proxy forwards',
    { MESH_PROXY_HOPS: '1' },
    ['Host: inner:7443', 'X-Forwarded-Host: na.example'],
    101,
  ],
  [
    'the host that the outer of two proxies appends',
    { MESH_PROXY_HOPS: '2' },
    ['Host: inner:7443', 'X-Forwarded-Host: evil.example, na.example, inner'],
    101,
  ],
  [
    'the host that a client says was forwarded, behind a proxy',
    { MESH_PROXY_HOPS: '1' },
    ['Host: inner:7443', 'X-Forwarded-Host: na.example, inner'],
    403,
  ],
  [
    'the host that a client says was forwarded',
    {},
    ['Host: inner:7443', 'X-Forwarded-Host: na.example'],
    403,
  ],
  ['a host that is none', {}, ['Host: a:b:c'], 403],
] as const) {
  test(`an origin that is ${name} is answered with ${expected}`, async () => {
    await using na = await startTestAuthority({ environment });
    const origin = 'Origin: https://na.example';
    const { status } = await upgraded(na, 'dashboard', [...lines, origin]);
    assert.equal(status, expected);
  });
}

test('/live without an upgrade is answered with 426', async () => {
  const na = await shared();
  using connection = await rawConnection(na.url);
  connection.write('GET /live?topic=dashboard HTTP/1.1\r\nHost: na\r\n\r\n');
  const received = await connection.until('"upgrade_required"');
  assert.match(received, /^HTTP\/1\.1 426 Upgrade Required\r\n[\s\S]*\r\nUpgrade: websocket\r\n/);
});

// How many connections are accepted before file descriptors run out.

const MOST = 20;

interface Listening {
  readonly listener: Listener;
  readonly open: number;
  readonly pauses: number;
  [Symbol.dispose](): void;
}

/** Listens on a fixed port, as the program does: only a fixed port can be opened again at once. */
async function startListening(): Promise<Listening> {
  const uws: typeof import('uWebSockets.js') = createRequire(import.meta.url)('uWebSockets.js');
  const app = uws.App();
  let open = 0;
  let pauses = 0;
  let listener: Listener | null = null;
  function noteConnection(change: number): void {
    open += change;
    listener?.noteConnections(open);
  }
  app.filter((_res, change) => noteConnection(Number(change)));
  app.get('/*', (res) => void res.end('here'));
  const onPaused = () => {
    pauses += 1;
  };
  const [host, port] = ['127.0.0.1', await ownPort()];
  listener = openListener({ app, uws, host, port, maxConnections: MOST, onPaused });
  return {
    listener,
    get open() {
      return open;
    },
    get pauses() {
      return pauses;
    },
    [Symbol.dispose]() {
      listener.close();
      app.close();
    },
  };
}

/** A connection that got an answer; null if it was refused. */
async function answered({ listener }: Listening): Promise<Socket | null> {
  const socket = connect(listener.port, '127.0.0.1');
  socket.on('error', () => undefined);
  const answer = once(socket, 'data').then(() => socket);
  answer.catch(() => undefined);
  socket.once('connect', () => socket.write('GET / HTTP/1.1\r\nHost: na\r\n\r\n'));
  return Promise.race([answer, once(socket, 'close').then(() => null)]).catch(() => null);
}

test('when connections would exhaust the descriptors, no more are accepted until some have ended', async () => {
  using server = await startListening();
  const held = await Promise.all(Array.from({ length: MOST }, () => answered(server)));
  assert.ok(held.every((socket) => socket !== null));
  assert.equal(await answered(server), null);
  assert.equal(server.pauses, 1);
  for (const socket of held.splice(0, 5)) socket?.destroy();
  await until(() => server.open === MOST - 5);
  let later: Socket | null = null;
  await until(async () => {
    later = await answered(server);
    return later !== null;
  });
  for (const socket of [...held, later as Socket | null]) socket?.destroy();
  await until(() => server.open === 0);
});

test('a listener that was closed while it paused accepts nothing more', async () => {
  using server = await startListening();
  const held = await Promise.all(Array.from({ length: MOST }, () => answered(server)));
  server.listener.close();
  for (const socket of held) socket?.destroy();
  await until(() => server.open === 0);
  assert.equal(await answered(server), null);
});

test('the descriptors of the process are divided among its threads, and some are reserved', () => {
  const one = connectionsPerThread(1);
  assert.ok(one >= 128);
  for (const threads of [2, 3, 8]) {
    const each = connectionsPerThread(threads);
    assert.ok(one === Infinity ? each === Infinity : each === Math.floor(one / threads));
  }
});

// Every kind of answer over a real connection that stays open or is closed afterward.

const LARGE = 'large '.repeat(100_000);
/** All characters of each text are below U+0100. */
const SHORT = 'sh\u00f6rt';
const PIECES = ['one', '', 'two', 'thr\u00e9e'];

const BODIES: Readonly<Record<string, () => Reply['body']>> = {
  short: () => SHORT,
  large: () => LARGE,
  pieces: () => pieces(PIECES),
  'no-pieces': () => pieces([]),
};

let app: Awaited<ReturnType<typeof listenApp>>;

before(async () => {
  // /<body>/<status>/<closing>
  app = await listenApp((app) =>
    app.any('/:body/:status/:closing', (res, req) => {
      const writer: PieceWriter = { res, aborted: false, onGone: null };
      res.onAborted(() => {
        writer.aborted = true;
        writer.onGone?.();
      });
      const reply: Reply = {
        status: Number(req.getParameter(1)),
        contentType: 'text/plain',
        headerLines: 'Cache-Control: no-store',
        refusal: null,
        contentSecurityPolicy: null,
        body: BODIES[req.getParameter(0) ?? '']?.() ?? '',
      };
      const closing = req.getParameter(2) as Closing;
      const request = { id: 'id', sentMethod: req.getMethod().toUpperCase() };
      void sendReply(writer, request, reply, closing, nextTurn);
    }),
  );
});

after(() => app[Symbol.dispose]());

function pieces(texts: readonly string[]): PiecewiseBody {
  const left = [...texts];
  return { next: async () => left.shift() ?? null, abandon: () => undefined };
}

/** A text sent as UTF-8, as the connection shows it. */
function received(text: string): string {
  return Buffer.from(text).toString('latin1');
}

const CASES = [
  ['GET', 'short', '200', received(SHORT)],
  ['GET', 'short', '304', ''],
  ['GET', 'large', '200', LARGE],
  ['GET', 'pieces', '200', received(PIECES.join(''))],
  ['GET', 'no-pieces', '200', ''],
  ['HEAD', 'short', '200', ''],
  ['HEAD', 'large', '200', ''],
  ['HEAD', 'pieces', '200', ''],
] as const;

function endOf(method: string, body: string, expected: string): string {
  if (method === 'GET' && body === 'pieces') return '\r\n0\r\n\r\n';
  return expected === '' ? '\r\n\r\n' : expected;
}

/** The content after the head, parsed as strictly as its framing is defined (RFC 9112, 7.1). */
function contentOf(head: string, sent: string): string {
  if (!head.includes('Transfer-Encoding: chunked')) return sent;
  let content = '';
  let left = sent;
  for (;;) {
    const [line = '', digits = ''] = /^([0-9a-f]+)\r\n/i.exec(left) ?? [];
    assert.notEqual(digits, '', `No chunk begins with ${JSON.stringify(left.slice(0, 40))}`);
    const length = Number.parseInt(digits, 16);
    content += left.slice(line.length, line.length + length);
    left = left.slice(line.length + length);
    assert.ok(left.startsWith('\r\n'), 'a chunk ends with a line break');
    left = left.slice(2);
    if (length > 0) continue;
    assert.equal(left, '', 'nothing follows the last chunk');
    return content;
  }
}

for (const [method, body, status, expected] of CASES) {
  for (const closing of ['stays', 'asked', 'forced'] as const) {
    // Answers to requests refused unread are short, and never generated while they are sent.
    if (closing === 'forced' && (body !== 'short' || status === '304')) continue;
    test(`${method} of ${body}, ${status}: the connection ${closing}, and the answer says so once`, async () => {
      using connection = await rawConnection(app.url);
      connection.write(`${method} /${body}/${status}/${closing} HTTP/1.1\r\nHost: na\r\n\r\n`);
      if (closing === 'forced') await connection.closed();
      else await connection.until(endOf(method, body, expected));
      const [head = '', ...rest] = connection.received().split('\r\n\r\n');
      const lines = head.split('\r\n').filter((line) => /^connection:/i.test(line));
      assert.deepEqual(lines, closing === 'stays' ? [] : ['Connection: close']);
      assert.equal(contentOf(head, rest.join('\r\n\r\n')), expected);
    });
  }
}

// Request bodies in transit: their memory bounds, and which ones are dropped.

interface Receiver {
  readonly url: string;
  readonly uploads: Uploads;
  [Symbol.dispose](): void;
}

/** A real server that only receives bodies, and answers with the result for each one. */
async function receiver(limits: UploadLimits, bodyLimit: number): Promise<Receiver> {
  const uploads = createUploads(limits);
  const app = await listenApp((app) => {
    app.post('/*', (res) => {
      const forget = uploads.receive(res, bodyLimit, (body) =>
        res.cork(() => res.end(described(body))),
      );
      res.onAborted(forget);
    });
  });
  return { ...app, uploads };
}

function described(body: ReceivedBody): string {
  return `<${typeof body === 'string' ? body : Buffer.from(body).toString('latin1')}>`;
}

/** A request with an incomplete body: when this resolves, this many bytes have arrived. */
async function begun({ url }: Receiver, bytes: number, total: number): Promise<RawConnection> {
  const connection = await rawConnection(url);
  connection.write(`POST / HTTP/1.1\r\nHost: na\r\nContent-Length: ${total}\r\n\r\n`);
  connection.write('x'.repeat(bytes));
  await arrived(url);
  return connection;
}

/** Everything written before this is read before these answers, because the server reads its sockets in turn. */
async function arrived(url: string): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    const response = await fetch(url, { method: 'POST', body: 'turn' });
    assert.equal(await response.text(), '<turn>');
  }
}

const ROOMY = { count: 100, bytes: 1024 * 1024 };

test('a body is passed on whole, in any number of pieces', async () => {
  using server = await receiver(ROOMY, 20_000);
  using connection = await begun(server, 10, 10_010);
  for (let piece = 0; piece < 10; piece += 1) {
    connection.write(String(piece).repeat(1000));
    await arrived(server.url);
  }
  const digits = Array.from({ length: 10 }, (_, piece) => String(piece).repeat(1000)).join('');
  assert.ok((await connection.until('>')).endsWith(`<${'x'.repeat(10)}${digits}>`));
});

for (const [sent, expected] of [
  [5000, 'x'.repeat(5000)],
  [5001, 'too_large'],
] as const) {
  test(`a body of ${sent} bytes in pieces of one, where 5000 are allowed`, async () => {
    using server = await receiver(ROOMY, 5000);
    using connection = await rawConnection(server.url);
    connection.write('POST / HTTP/1.1\r\nHost: na\r\nTransfer-Encoding: chunked\r\n\r\n');
    connection.write('1\r\nx\r\n'.repeat(sent));
    connection.write('0\r\n\r\n');
    assert.ok((await connection.until('>')).endsWith(`<${expected}>`));
  });
}

test('a drain drops every body that has not ended, and none that has', async () => {
  using server = await receiver(ROOMY, 20_000);
  using headOnly = await begun(server, 0, 10);
  using half = await begun(server, 5, 10);
  using whole = await begun(server, 10, 10);
  server.uploads.dropAll();
  assert.match(await headOnly.until('>'), /<dropped>/);
  assert.match(await half.until('>'), /<dropped>/);
  assert.match(await whole.until('>'), /<x{10}>/);
  using later = await begun(server, 10, 10);
  assert.match(await later.until('>'), /<x{10}>/);
});

test('with too many bodies in transit the one idle longest is dropped', async () => {
  using server = await receiver({ count: 3, bytes: 1024 * 1024 }, 20_000);
  using first = await begun(server, 1, 4);
  using second = await begun(server, 1, 4);
  first.write('x');
  await arrived(server.url);
  using third = await begun(server, 1, 4);
  // The third request, and the one that checks whether it has arrived, exceed the limit.
  assert.match(await second.until('>'), /<dropped>/);
  first.write('xx');
  third.write('xxx');
  assert.match(await first.until('>'), /<xxxx>/);
  assert.match(await third.until('>'), /<xxxx>/);
});

test('with too many bytes in transit the bodies idle longest are dropped', async () => {
  using server = await receiver({ count: 100, bytes: 40_000 }, 20_000);
  using first = await begun(server, 15_000, 15_001);
  using second = await begun(server, 15_000, 15_001);
  using third = await begun(server, 15_000, 15_001);
  assert.match(await first.until('>'), /<dropped>/);
  second.write('x');
  third.write('x');
  assert.match(await second.until('>'), /<x{15001}>/);
  assert.match(await third.until('>'), /<x{15001}>/);
});

test('a client that disconnects releases what it occupied', async () => {
  using server = await receiver({ count: 3, bytes: 40_000 }, 20_000);
  for (let round = 0; round < 10; round += 1) {
    const gone = await begun(server, 15_000, 15_001);
    gone.socket.destroy();
    await arrived(server.url);
  }
  using first = await begun(server, 15_000, 15_001);
  using second = await begun(server, 15_000, 15_001);
  for (const connection of [first, second]) {
    connection.write('x');
    assert.match(await connection.until('>'), /<x{15001}>/);
  }
});

// The logged address of a client, which is known without a lookup only while all connections have the same one.

const HERE = '127.0.0.1';
const THERE = '127.0.0.2';

test('no connection is ever attributed to another address, as connections open and close', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.nat()), { maxLength: 60 }),
      (happenings) => {
        const peers = createPeers();
        const open: string[] = [];
        for (const happening of happenings) {
          if (typeof happening === 'string') {
            peers.opened(happening);
            open.push(happening);
          } else if (open.length > 0) {
            open.splice(happening % open.length, 1);
            peers.closed();
          }
          if (peers.only !== null) assert.ok(open.every((address) => address === peers.only));
        }
        while (open.pop() !== undefined) peers.closed();
        peers.opened('d');
        assert.equal(peers.only, 'd');
      },
    ),
  );
});

async function connectFrom(na: TestAuthority, localAddress: string): Promise<Socket> {
  const socket = connect({ port: Number(new URL(na.url).port), host: HERE, localAddress });
  await once(socket, 'connect');
  return socket;
}

let requests = 0;

/** The address that is logged for a request on the connection. */
async function loggedAddress(na: TestAuthority, socket: Socket): Promise<string | undefined> {
  requests += 1;
  const id = `request-${requests}`;
  socket.write(`GET /healthz HTTP/1.1\r\nHost: na\r\nX-Request-ID: ${id}\r\n\r\n`);
  await once(socket, 'data');
  await na.settle();
  const line = na.logLines.find((text) => text.includes(`request_id=${id} `));
  return / remote_addr=(\S+)/.exec(line ?? '')?.[1];
}

async function openViewer(na: TestAuthority, localAddress: string): Promise<Socket> {
  const socket = await connectFrom(na, localAddress);
  socket.write(
    'GET /live?topic=dashboard HTTP/1.1\r\nHost: na\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  );
  await once(socket, 'data');
  return socket;
}

test('each request is logged with the address of its own connection, however many there are', async () => {
  await using na = await startTestAuthority();
  const first = await connectFrom(na, HERE);
  assert.equal(await loggedAddress(na, first), HERE);
  const second = await connectFrom(na, THERE);
  assert.equal(await loggedAddress(na, second), THERE);
  assert.equal(await loggedAddress(na, first), HERE);
  first.destroy();
  assert.equal(await loggedAddress(na, second), THERE);
  second.destroy();
  const third = await connectFrom(na, HERE);
  assert.equal(await loggedAddress(na, third), HERE);
  third.destroy();
});

test('a viewer of live pages does not count as an HTTP client', async () => {
  await using na = await startTestAuthority();
  const viewer = await openViewer(na, THERE);
  const first = await connectFrom(na, HERE);
  assert.equal(await loggedAddress(na, first), HERE);
  viewer.destroy();
  const second = await connectFrom(na, THERE);
  assert.equal(await loggedAddress(na, second), THERE);
  assert.equal(await loggedAddress(na, first), HERE);
  for (const socket of [first, second]) socket.destroy();
});
