/** What every answer has in common, and how bodies and paths are read before a route is. */
import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { after, before, suite, test } from 'node:test';
import { fuzz } from './fuzz/fuzz.ts';
import { randomFrom } from './fuzz/random.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { type RawConnection, rawConnection } from './support/raw-http.ts';
import {
  freshNonce,
  get,
  invite,
  joinedNode,
  nodeRequest,
  operate,
  operatorRequest,
  outcome,
  type Received,
  send,
  sendRaw,
} from './support/requests.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** One request for each kind of answer, with its status. */
const ANSWERS: readonly (readonly [
  string,
  (na: TestAuthority, headers: Record<string, string>) => Promise<Received>,
])[] = [
  ['200', (na, headers) => send(na, 'GET', '/healthz', { headers })],
  ['200', (na, headers) => send(na, 'GET', '/genesis', { headers })],
  ['200', (na, headers) => send(na, 'GET', '/metrics', { headers })],
  [
    '304',
    (na, headers) => send(na, 'GET', '/crl', { headers: { ...headers, 'If-None-Match': '*' } }),
  ],
  ['400 invalid_json', (na, headers) => send(na, 'POST', '/join', { headers, body: '{' })],
  ['400 invalid_json_object', (na, headers) => send(na, 'POST', '/join', { headers, body: '[]' })],
  ['400 bad_request', (na, headers) => send(na, 'GET', '/%ff', { headers })],
  ['400 missing_node_public_key', (na, headers) => send(na, 'POST', '/join', { headers })],
  ['401 admin_auth_failed', (na, headers) => send(na, 'POST', '/admin/invite', { headers })],
  [
    '401 node_auth_failed',
    async (na, headers) => {
      const { certId, key } = await joinedNode(na);
      const body = JSON.stringify({ cert_id: certId, node_public_key: key.publicKey });
      return send(na, 'POST', '/heartbeat', { headers, body });
    },
  ],
  [
    '403 invalid_invite_token',
    (na, headers) =>
      send(na, 'POST', '/join', { headers, body: '{"node_public_key":"k","invite_token":"t"}' }),
  ],
  [
    '403 insufficient_operator_tier',
    (na, headers) => {
      const { init } = operatorRequest(na, '/admin/revoke', {}, { operator: na.standard });
      return send(na, 'POST', '/admin/revoke', {
        ...init,
        headers: { ...init.headers, ...headers },
      });
    },
  ],
  ['404 not_found', (na, headers) => send(na, 'GET', '/nowhere', { headers })],
  [
    '404 certificate_not_found',
    (na, headers) => {
      const { init } = operatorRequest(na, '/admin/revoke', { cert_id: 'c' });
      return send(na, 'POST', '/admin/revoke', {
        ...init,
        headers: { ...init.headers, ...headers },
      });
    },
  ],
  ['405 method_not_allowed', (na, headers) => send(na, 'DELETE', '/join', { headers })],
  [
    '413 request_entity_too_large',
    (na, headers) => send(na, 'POST', '/join', { headers, body: ' '.repeat(5000) }),
  ],
  [
    '422 request_validation_failed',
    (na, headers) =>
      send(na, 'POST', '/heartbeat', {
        headers,
        body: '{"cert_id":"c","node_public_key":"k","status":1}',
      }),
  ],
  [
    '429 rate_limit_exceeded',
    async (na, headers) => {
      await send(na, 'POST', '/renew');
      return send(na, 'POST', '/renew', { headers });
    },
  ],
];

const LIMIT = 4096;
const SMALL = { MESH_MAX_REQUEST_BYTES: String(LIMIT), MESH_RATE_LIMIT_RENEW: '1/60' };
const shared = sharedAuthority({ environment: SMALL });
const common = sharedAuthority();

for (const [expected, ask] of ANSWERS) {
  test(`${expected}: the answer has an id and protects itself, and nothing internal is in it`, async () => {
    const na = await shared();
    const own = await ask(na, {});
    assert.equal(outcome(own), expected);
    assert.match(own.headers.get('x-request-id') ?? '', UUID);
    assertEnvelope(own);
    const named = await ask(na, { 'X-Request-ID': 'my.request:1_-Z' });
    assert.equal(named.headers.get('x-request-id'), 'my.request:1_-Z');
    assertEnvelope(named);

    const { headers, text } = own;
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('x-frame-options'), 'DENY');
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/);
    assert.notEqual(headers.get('cache-control'), null);
    const shown = `${[...headers].join('\n')}\n${text}`;
    for (const secret of [na.dataDir, '/work', 'node_modules', 'src/', '.ts:', 'lmdb', '    at ']) {
      assert.equal(shown.includes(secret), false, secret);
    }
  });
}

test('non-ASCII bytes at the ends of an X-Request-ID are not part of it, and are never returned', async () => {
  const na = await common();
  for (const id of ['café', 'écaf', 'ééé']) {
    const sent = { headers: { 'X-Request-ID': Buffer.from(id).toString('latin1') } };
    const answered = (await sendRaw(na, 'GET', '/nowhere', sent)).headers.get('x-request-id') ?? '';
    assert.ok(answered === 'caf' || UUID.test(answered), answered);
  }
});

test('two requests never get the same id', async () => {
  const na = await common();
  const answers = await Promise.all(Array.from({ length: 50 }, () => get(na, '/healthz')));
  assert.equal(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size, 50);
});

test('an X-Request-ID of 1 to 128 characters is kept, and any other is replaced', async () => {
  const na = await common();
  for (const id of ['i'.repeat(128), '0', randomUUID()]) {
    const answer = await send(na, 'GET', '/nowhere', { headers: { 'X-Request-ID': id } });
    assert.equal(answer.headers.get('x-request-id'), id);
    assertEnvelope(answer);
  }
  const beyondAscii = Buffer.from('naïve').toString('latin1');
  for (const id of ['i'.repeat(129), 'two words', 'a/b', 'a"b', '{"a":1}', beyondAscii, '']) {
    const answer = await sendRaw(na, 'GET', '/nowhere', { headers: { 'X-Request-ID': id } });
    assert.match(answer.headers.get('x-request-id') ?? '', UUID, id);
    assertEnvelope(answer);
  }
});

test('an unknown path is 404, and one that cannot be decoded 400, regardless of the method', async () => {
  const na = await common();
  for (const [expected, paths] of [
    ['404 not_found', ['/nowhere', '/admin', '/nodes/', '//nodes', '/NODES', '/genesis/../nodes']],
    ['404 not_found', ['/admin%2Finvite', '/admin/operator-keys//revoke', '/constructor']],
    ['404 not_found', ['/admin/operator-keys/a/b/revoke']],
    ['400 bad_request', ['/%', '/%f', '/%zz', '/%ff', '/%c3%28', '/genesis%80', '/%ed%a0%80']],
  ] as const) {
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'DELETE', 'PUT']) {
        const answer = await sendRaw(na, method, path);
        assert.equal(outcome(answer), expected, `${method} ${path}`);
      }
    }
  }
});

test('a length beyond the limit is refused before the body is sent', async () => {
  const na = await shared();
  const headers = { 'Content-Length': String(2 ** 40), Connection: 'keep-alive' };
  const answer = await sendRaw(na, 'POST', '/join', { headers, pieces: ['{'] });
  assert.equal(outcome(answer), '413 request_entity_too_large');
  assert.equal(answer.headers.get('connection'), 'close');
});

test('a refused body does not affect the requests after it', async () => {
  const na = await shared();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      index % 2 === 0
        ? send(na, 'POST', '/join', { body: 'x'.repeat(LIMIT * 4) })
        : get(na, '/healthz'),
    ),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array(10).fill([413, 200]).flat(),
  );
});

test('a body that is no strict JSON in UTF-8 is 400 invalid_json, on node and on operator routes', async () => {
  const na = await common();
  for (const body of [
    '{"a":1',
    ' ',
    '{"a":[{"b":{"c":1,"\\u0063":2}}]}',
    nested(65),
    '{"a":1e400}',
    '{"a":"\\ud83d"}',
    '\ufeff{}',
    Buffer.from('{"a":"caf\xe9"}', 'latin1'),
    Buffer.from('{}', 'utf16le'),
  ]) {
    for (const path of ['/heartbeat', '/admin/revoke']) {
      const answer = await sendRaw(na, 'POST', path, { pieces: [body] });
      assert.equal(outcome(answer), '400 invalid_json', `${path} ${body}`);
      assertEnvelope(answer);
    }
  }
  for (const body of ['[]', '[{}]', '"text"', '1', '1.5', 'true', 'null', ' null ']) {
    assert.equal(outcome(await send(na, 'POST', '/renew', { body })), '400 invalid_json_object');
  }
});

test('everything that strict JSON allows is accepted: 64 levels, escapes, unusual names, long numbers', async () => {
  const na = await common();
  const extra = {
    deep: JSON.parse(nested(63).slice(5, -1)),
    '': 1,
    __proto__x: { toString: null },
    text: '\u{1F600} \u0000 \u2028 é',
    long: 123456789012345678901234567890n,
  };
  assert.equal(outcome(await operate(na, '/admin/invite', extra)), '200');
});

test('a member named __proto__ is a member like any other', async () => {
  const na = await common();
  const body = JSON.parse('{"__proto__":{"cert_id":"inherited"}}');
  assert.equal(outcome(await operate(na, '/admin/revoke', body)), '400 missing_cert_id');
});

test('an empty body is treated as {}', async () => {
  const na = await common();
  assert.equal(outcome(await sendRaw(na, 'POST', '/join')), '400 missing_node_public_key');
  const { init } = operatorRequest(na, '/admin/revoke', {});
  const answer = await sendRaw(na, 'POST', '/admin/revoke', { headers: init.headers });
  assert.equal(outcome(answer), '400 missing_cert_id');
});

test('a body is read as JSON, whatever its type is', async () => {
  const na = await common();
  for (const type of ['text/plain', 'application/xml', 'multipart/form-data', 'nonsense', '']) {
    const { init } = operatorRequest(na, '/admin/invite');
    const answer = await sendRaw(na, 'POST', '/admin/invite', {
      headers: { ...init.headers, 'Content-Type': type },
      pieces: [init.body ?? ''],
    });
    assert.equal(outcome(answer), '200', type);
  }
});

test('a body in many small pieces is read like one in one piece', async () => {
  const na = await common();
  const { init } = operatorRequest(na, '/admin/invite', { note: 'é✓'.repeat(50) });
  const bytes = Buffer.from(init.body ?? '');
  const pieces = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
  const answer = await sendRaw(na, 'POST', '/admin/invite', { headers: init.headers, pieces });
  assert.equal(outcome(answer), '200');
});

for (const [name, ask, locs] of [
  [
    'a status that is no text',
    (na: TestAuthority) => send(na, 'POST', '/heartbeat', { body: heartbeatBody('5') }),
    [['body', 'status']],
  ],
  [
    'a status of 65 characters',
    (na: TestAuthority) =>
      send(na, 'POST', '/heartbeat', { body: heartbeatBody(`"${'s'.repeat(65)}"`) }),
    [['body', 'status']],
  ],
  [
    'a reason that is a list',
    (na: TestAuthority) =>
      operate(na, '/admin/operator-keys/ops-standard/revoke', { reason: ['x'] }),
    [['body', 'reason']],
  ],
  ['renewal roles that are a text', (na: TestAuthority) => renewWith(na, 'x'), [['body', 'roles']]],
] as const) {
  test(`${name} is 422, and details.errors says where`, async () => {
    const na = await common();
    const answer = await ask(na);
    assert.equal(outcome(answer), '422 request_validation_failed');
    const { details } = answer.body.error;
    assert.deepEqual(Object.keys(details), ['errors']);
    for (const error of details.errors) {
      assert.deepEqual(Object.keys(error).sort(), ['loc', 'msg', 'type']);
      assert.equal(typeof error.msg, 'string');
      assert.equal(typeof error.type, 'string');
    }
    assert.deepEqual(
      details.errors.map(({ loc }: { loc: string[] }) => loc),
      locs,
    );
  });
}

test('a status of 64 characters is accepted', async () => {
  const na = await common();
  const { key, certId } = await joinedNode(na);
  const body = { cert_id: certId, status: 's'.repeat(64) };
  assert.equal(outcome(await nodeRequest(na, '/heartbeat', key, body)), '200');
});

test('HEAD is GET without the body', async () => {
  const na = await common();
  for (const path of ['/healthz', '/readyz', '/health', '/nodes', '/genesis', '/swagger.json']) {
    await get(na, path);
    // Sent without `Accept-Encoding`.
    const full = await sendRaw(na, 'GET', path);
    const head = await sendRaw(na, 'HEAD', path);
    assert.equal(head.status, full.status);
    assert.equal(head.text, '');
    const same = ['content-type', 'content-length', 'etag', 'cache-control', 'x-frame-options'];
    for (const name of same) {
      assert.equal(head.headers.get(name), full.headers.get(name), `${name} of ${path}`);
    }
  }
});

test('JSON answers say that they are JSON in UTF-8 and must not be stored', async () => {
  const na = await common();
  for (const answer of [await get(na, '/nodes'), await get(na, '/nowhere')]) {
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json\b/);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
  }
});

test('a client that disconnects in the middle of its body affects no one', async () => {
  const na = await common();
  const { hostname, port } = new URL(na.url);
  const { connect } = await import('node:net');
  for (let index = 0; index < 10; index += 1) {
    const socket = connect(Number(port), hostname);
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.write(`POST /join HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: 100\r\n\r\n{"a":`);
    socket.destroy();
    await new Promise((resolve) => socket.once('close', resolve));
  }
  assert.equal(outcome(await get(na, '/healthz')), '200');
  assert.equal((await invite(na)).length > 0, true);
});

function assertEnvelope({ status, headers, body, text }: Received): void {
  if (status < 400) return;
  assert.deepEqual(Object.keys(body), ['error']);
  const { error } = body;
  assert.deepEqual(Object.keys(error).sort(), ['code', 'details', 'message', 'request_id']);
  assert.match(error.code, /^[a-z]+(_[a-z]+)*$/);
  assert.equal(typeof error.message, 'string');
  assert.notEqual(error.message, '');
  assert.equal(Object.prototype.toString.call(error.details), '[object Object]');
  assert.equal(error.request_id, headers.get('x-request-id'));
  assert.equal(headers.get('content-length'), String(Buffer.byteLength(text)));
}

/** `depth` levels: an object around lists. */
function nested(depth: number): string {
  return `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
}

function heartbeatBody(status: string): string {
  return `{"cert_id":"c","node_public_key":"k","status":${status},"nonce":"${freshNonce()}"}`;
}

async function renewWith(na: TestAuthority, roles: string | null): Promise<Received> {
  const { key, certId } = await joinedNode(na);
  return nodeRequest(na, '/renew', key, { cert_id: certId, roles });
}

suite('an answer that hides which library sent it:', () => {
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
});

test('no mutated request gets a 500 or an incomplete envelope', async (t) => {
  const seed = randomInt(2 ** 31);
  t.diagnostic(`seed ${seed}; more: npx tsx test/fuzz/main.ts --requests 25000 --seed ${seed}`);
  await using na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_VERIFY: 'off' } });
  const { sent, statuses, problems } = await fuzz(na, randomFrom(seed), 1000);
  t.diagnostic(`${sent} sent: ${JSON.stringify(Object.fromEntries(statuses))}`);
  assert.deepEqual(problems, []);
  assert.ok((statuses.get(200) ?? 0) + (statuses.get(201) ?? 0) > sent / 10, 'many are answered');
});
