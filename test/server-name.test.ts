/** No answer names the library that sent it. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { type RawConnection, rawConnection } from './support/raw-http.ts';
import { get } from './support/requests.ts';

let na: TestAuthority;
let etag: string;

before(async () => {
  na = await startTestAuthority({
    flags: { threads: '2' },
    environment: { MESH_CORS_ORIGINS: 'https://app.example' },
  });
  etag = (await get(na, '/genesis')).headers.get('etag') ?? '';
});
after(() => na?.[Symbol.asyncDispose]());

const UPGRADE = {
  Upgrade: 'websocket',
  Connection: 'Upgrade',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

/** Each kind of answer: the request, and the first line of the answer. */
const KINDS: Readonly<
  Record<
    string,
    { request: string; headers?: Record<string, string>; body?: string; first: string }
  >
> = {
  'a JSON answer': { request: 'GET /health', first: '200 OK' },
  'a HEAD answer': { request: 'HEAD /health', first: '200 OK' },
  'a page': { request: 'GET /', first: '200 OK' },
  'a large document, which is sent piece by piece': {
    request: 'GET /swagger.json',
    first: '200 OK',
  },
  'a list, which is built while it is sent': { request: 'GET /nodes', first: '200 OK' },
  'an unknown path': { request: 'GET /nowhere', first: '404 Not Found' },
  'an unknown path without its body': { request: 'HEAD /nowhere', first: '404 Not Found' },
  'another method': { request: 'PUT /health', first: '405 Method Not Allowed' },
  'a preflight': {
    request: 'OPTIONS /health',
    headers: { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' },
    first: '200 OK',
  },
  'a refused body': {
    request: 'POST /join',
    headers: { 'Content-Length': '99999999' },
    first: '413 Payload Too Large',
  },
  'an ambiguous body': {
    request: 'POST /join',
    headers: { 'Transfer-Encoding': 'gzip, chunked' },
    body: '0\r\n\r\n',
    first: '400 Bad Request',
  },
  'a WebSocket': {
    request: 'GET /live?topic=dashboard',
    headers: UPGRADE,
    first: '101 Switching Protocols',
  },
  'a refused WebSocket': {
    request: 'GET /live?topic=none',
    headers: UPGRADE,
    first: '400 Bad Request',
  },
};

/** The head of the answer. */
async function headOf(connection: RawConnection, text: string): Promise<string> {
  connection.write(text);
  const received = await connection.until('\r\n\r\n');
  return received.slice(0, received.indexOf('\r\n\r\n'));
}

for (const [kind, { request, headers = {}, body = '', first }] of Object.entries(KINDS)) {
  test(`${kind} does not name uWebSockets`, async () => {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    // Several connections, because each thread answers some of them.
    for (let count = 0; count < 4; count += 1) {
      using connection = await rawConnection(na.url);
      const text = `${request} HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}\r\n${body}`;
      const head = await headOf(connection, text);
      assert.equal(head.slice('HTTP/1.1 '.length, head.indexOf('\r\n')), first);
      assert.doesNotMatch(head, /uwebsockets/i);
    }
  });
}

test('an unchanged document does not name uWebSockets', async () => {
  using connection = await rawConnection(na.url);
  const text = `GET /genesis HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: ${etag}\r\n\r\n`;
  const head = await headOf(connection, text);
  assert.match(head, /^HTTP\/1\.1 304 /);
  assert.doesNotMatch(head, /uwebsockets/i);
});

/** uWebSockets.js refuses it before any code of this program runs. The text of that answer is compiled in. */
test('HTTP/1.0 is refused by the library, which names itself in the text alone', async () => {
  using connection = await rawConnection(na.url);
  connection.write('GET / HTTP/1.0\r\nHost: localhost\r\n\r\n');
  const [head = '', shown = ''] = (await connection.closed()).split('\r\n\r\n');
  assert.match(head, /^HTTP\/1\.1 505 /);
  assert.doesNotMatch(head, /uwebsockets/i);
  assert.match(shown, /uWebSockets/);
});
