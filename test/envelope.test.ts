import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
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
import { sharedAuthority } from './support/shared-authority.ts';

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

const SMALL = { MESH_MAX_REQUEST_BYTES: '4096', MESH_RATE_LIMIT_RENEW: '1/60' };
const shared = sharedAuthority({ environment: SMALL });
const common = sharedAuthority();

for (const [expected, ask] of ANSWERS) {
  test(`${expected}: X-Request-ID is a new UUID, or the one the client sent`, async () => {
    const na = await shared();
    const own = await ask(na, {});
    assert.equal(outcome(own), expected);
    assert.match(own.headers.get('x-request-id') ?? '', UUID);
    assertEnvelope(own);
    const named = await ask(na, { 'X-Request-ID': 'my.request:1_-Z' });
    assert.equal(named.headers.get('x-request-id'), 'my.request:1_-Z');
    assertEnvelope(named);
  });

  test(`${expected}: the answer cannot be framed, sniffed or made to load anything`, async () => {
    const na = await shared();
    const { headers } = await ask(na, {});
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.equal(headers.get('x-frame-options'), 'DENY');
    assert.equal(headers.get('referrer-policy'), 'no-referrer');
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/);
    assert.notEqual(headers.get('cache-control'), null);
  });

  test(`${expected}: nothing internal appears in the answer`, async () => {
    const na = await shared();
    const { headers, text } = await ask(na, {});
    const shown = `${[...headers].join('\n')}\n${text}`;
    for (const secret of [na.dataDir, '/work', 'node_modules', 'src/', '.ts:', 'lmdb', '    at ']) {
      assert.equal(shown.includes(secret), false, secret);
    }
  });
}

test('non-ASCII bytes at the ends of an X-Request-ID are not part of it, and are never returned', async () => {
  await using na = await startTestAuthority();
  for (const id of ['café', 'écaf', 'ééé']) {
    const sent = { headers: { 'X-Request-ID': Buffer.from(id).toString('latin1') } };
    const answered = (await sendRaw(na, 'GET', '/nowhere', sent)).headers.get('x-request-id') ?? '';
    assert.ok(answered === 'caf' || UUID.test(answered), answered);
  }
});

test('two requests never get the same id', async () => {
  await using na = await startTestAuthority();
  const answers = await Promise.all(Array.from({ length: 50 }, () => get(na, '/healthz')));
  assert.equal(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size, 50);
});

for (const [name, id] of [
  ['of 128 characters', 'i'.repeat(128)],
  ['of one character', '0'],
  ['that is a UUID', randomUUID()],
] as const) {
  test(`an X-Request-ID ${name} is kept`, async () => {
    const na = await common();
    const answer = await send(na, 'GET', '/nowhere', { headers: { 'X-Request-ID': id } });
    assert.equal(answer.headers.get('x-request-id'), id);
    assert.equal(answer.body.error.request_id, id);
  });
}

for (const [name, id] of [
  ['of 129 characters', 'i'.repeat(129)],
  ['with a blank in it', 'two words'],
  ['with a slash', 'a/b'],
  ['with a quote', 'a"b'],
  ['with a brace', '{"a":1}'],
  ['beyond ASCII', Buffer.from('naïve').toString('latin1')],
  ['that is empty', ''],
] as const) {
  test(`an X-Request-ID ${name} is replaced`, async () => {
    const na = await common();
    const answer = await sendRaw(na, 'GET', '/nowhere', { headers: { 'X-Request-ID': id } });
    assert.match(answer.headers.get('x-request-id') ?? '', UUID);
    assertEnvelope(answer);
  });
}

for (const [name, path] of [
  ['an unknown path', '/nowhere'],
  ['the root of the admin routes', '/admin'],
  ['a path with a slash at its end', '/nodes/'],
  ['a path with two slashes', '//nodes'],
  ['a path in capitals', '/NODES'],
  ['a path that climbs', '/genesis/../nodes'],
  ['an encoded slash', '/admin%2Finvite'],
  ['a missing path parameter', '/admin/operator-keys//revoke'],
  ['a path parameter too many', '/admin/operator-keys/a/b/revoke'],
  ['a name every object has', '/constructor'],
] as const) {
  test(`${name} is 404 not_found, regardless of the method`, async () => {
    const na = await common();
    for (const method of ['GET', 'POST', 'DELETE', 'PUT']) {
      assert.equal(outcome(await sendRaw(na, method, path)), '404 not_found', method);
    }
  });
}

for (const [path, allow] of [
  ['/nodes', 'GET, HEAD'],
  ['/healthz', 'GET, HEAD'],
  ['/swagger.json', 'GET, HEAD'],
  ['/join', 'POST'],
  ['/admin/invite', 'POST'],
  ['/admin/operator-keys/any/revoke', 'POST'],
] as const) {
  const allowed: readonly string[] = allow.split(', ');
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
    if (allowed.includes(method)) continue;
    test(`${method} ${path} is 405 and Allow names ${allow}`, async () => {
      const na = await common();
      const answer = await sendRaw(na, method, path);
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.get('allow'), allow);
      if (method === 'HEAD') assert.equal(answer.text, '');
      else assert.equal(outcome(answer), '405 method_not_allowed');
    });
  }
}

for (const path of ['/%', '/%f', '/%zz', '/%ff', '/%c3%28', '/genesis%80', '/%ed%a0%80']) {
  for (const method of ['GET', 'POST']) {
    test(`${method} ${path} cannot be decoded: 400 bad_request`, async () => {
      const na = await common();
      assert.equal(outcome(await sendRaw(na, method, path)), '400 bad_request');
    });
  }
}

const LIMIT = 4096;

for (const [size, expected] of [
  [LIMIT, '400 invalid_json'],
  [LIMIT + 1, '413 request_entity_too_large'],
  [LIMIT * 8, '413 request_entity_too_large'],
] as const) {
  const body = 'x'.repeat(size);

  test(`a body of ${size} bytes where ${LIMIT} are allowed is ${expected}`, async () => {
    const na = await shared();
    const answer = await send(na, 'POST', '/join', { body });
    assert.equal(outcome(answer), expected);
    assertEnvelope(answer);
  });

  test(`a body of ${size} bytes sent in pieces without a length is ${expected}`, async () => {
    const na = await shared();
    const pieces = body.match(/.{1,1000}/gs) ?? [];
    const answer = await sendRaw(na, 'POST', '/join', { pieces });
    assert.equal(outcome(answer), expected);
    assertEnvelope(answer);
  });
}

test('a length beyond the limit is refused before the body is sent', async () => {
  await using na = await startTestAuthority({ environment: SMALL });
  const headers = { 'Content-Length': String(2 ** 40), Connection: 'keep-alive' };
  const answer = await sendRaw(na, 'POST', '/join', { headers, pieces: ['{'] });
  assert.equal(outcome(answer), '413 request_entity_too_large');
  assert.equal(answer.headers.get('connection'), 'close');
});

test('a refused body does not affect the requests after it', async () => {
  await using na = await startTestAuthority({ environment: SMALL });
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

for (const [name, body] of [
  ['half an object', '{"a":1'],
  ['nothing but a blank', ' '],
  ['two values', '{}{}'],
  ['text behind the value', '{} x'],
  ['a comma too many', '{"a":1,}'],
  ['single quotes', "{'a':1}"],
  ['a name without quotes', '{a:1}'],
  ['a comment', '{/* */}'],
  ['a duplicate member', '{"a":1,"a":1}'],
  ['a duplicate member far inside', '{"a":[{"b":{"c":1,"c":2}}]}'],
  ['a duplicate member in another spelling', '{"a":1,"\\u0061":1}'],
  ['nesting 65 deep', nested(65)],
  ['nesting 8000 deep', nested(8000)],
  ['NaN', '{"a":NaN}'],
  ['Infinity', '{"a":-Infinity}'],
  ['a float that overflows', '{"a":1e400}'],
  ['a float that overflows below', '{"a":-1.5e999}'],
  ['a leading zero', '{"a":01}'],
  ['a leading plus', '{"a":+1}'],
  ['a number without digits behind the point', '{"a":1.}'],
  ['hexadecimal', '{"a":0x10}'],
  ['True', '{"a":True}'],
  ['a high surrogate alone', '{"a":"\\ud83d"}'],
  ['a low surrogate alone', '{"a":"\\ude00"}'],
  ['surrogates in the wrong order', '{"a":"\\ude00\\ud83d"}'],
  ['a lone surrogate in a name', '{"\\ud800":1}'],
  ['an unknown escape', '{"a":"\\x41"}'],
  ['a raw line break in a string', '{"a":"\n"}'],
  ['a raw zero byte in a string', '{"a":"\0"}'],
  ['a byte-order mark', '\ufeff{}'],
  ['a no-break space', '\u00a0{}'],
  ['a Latin-1 byte', Buffer.from('{"a":"caf\xe9"}', 'latin1')],
  ['an overlong encoding', Buffer.from([0x7b, 0xc0, 0xaf, 0x7d])],
  ['a surrogate in UTF-8', Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x7d])],
  ['UTF-8 cut short', Buffer.from([0x7b, 0x22, 0xe2, 0x82])],
  ['UTF-16', Buffer.from('{}', 'utf16le')],
] as const) {
  test(`a body with ${name} is 400 invalid_json, on node and on operator routes`, async () => {
    const na = await common();
    for (const path of ['/join', '/heartbeat', '/admin/invite', '/admin/revoke']) {
      const answer = await sendRaw(na, 'POST', path, { pieces: [body] });
      assert.equal(outcome(answer), '400 invalid_json', path);
      assertEnvelope(answer);
    }
  });
}

for (const body of ['[]', '[{}]', '"text"', '1', '1.5', 'true', 'null', ' null ']) {
  test(`the body ${body} is JSON but not an object: 400 invalid_json_object`, async () => {
    const na = await common();
    for (const path of ['/renew', '/admin/revoke']) {
      assert.equal(outcome(await send(na, 'POST', path, { body })), '400 invalid_json_object');
    }
  });
}

test('everything that strict JSON allows is accepted: 64 levels, escapes, unusual names, long numbers', async () => {
  await using na = await startTestAuthority();
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
  await using na = await startTestAuthority();
  const body = JSON.parse('{"__proto__":{"cert_id":"inherited"}}');
  assert.equal(outcome(await operate(na, '/admin/revoke', body)), '400 missing_cert_id');
});

test('an empty body is treated as {}', async () => {
  await using na = await startTestAuthority();
  assert.equal(outcome(await sendRaw(na, 'POST', '/join')), '400 missing_node_public_key');
  const { init } = operatorRequest(na, '/admin/revoke', {});
  const answer = await sendRaw(na, 'POST', '/admin/revoke', { headers: init.headers });
  assert.equal(outcome(answer), '400 missing_cert_id');
});

for (const type of ['text/plain', 'application/xml', 'multipart/form-data', 'nonsense', '']) {
  test(`a body is read as JSON even if its type is ${JSON.stringify(type)}`, async () => {
    const na = await common();
    const { init } = operatorRequest(na, '/admin/invite');
    const answer = await sendRaw(na, 'POST', '/admin/invite', {
      headers: { ...init.headers, 'Content-Type': type },
      pieces: [init.body ?? ''],
    });
    assert.equal(outcome(answer), '200');
  });
}

test('a body in many small pieces is read like one in one piece', async () => {
  await using na = await startTestAuthority();
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
  await using na = await startTestAuthority();
  const { key, certId } = await joinedNode(na);
  const body = { cert_id: certId, status: 's'.repeat(64) };
  assert.equal(outcome(await nodeRequest(na, '/heartbeat', key, body)), '200');
});

for (const path of [
  '/healthz',
  '/readyz',
  '/health',
  '/nodes',
  '/genesis',
  '/sovereign.json',
  '/policy',
  '/crl',
  '/swagger.json',
]) {
  test(`HEAD ${path} is GET without the body`, async () => {
    const na = await common();
    await get(na, path);
    // Sent without `fetch`, which requests compression.
    const full = await sendRaw(na, 'GET', path);
    const head = await sendRaw(na, 'HEAD', path);
    assert.equal(head.status, full.status);
    assert.equal(head.text, '');
    for (const name of ['content-type', 'etag', 'cache-control', 'x-frame-options']) {
      assert.equal(head.headers.get(name), full.headers.get(name), name);
    }
    assert.equal(head.headers.get('content-length'), full.headers.get('content-length'));
  });
}

test('JSON answers say that they are JSON in UTF-8 and must not be stored', async () => {
  await using na = await startTestAuthority();
  for (const answer of [await get(na, '/nodes'), await get(na, '/nowhere')]) {
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json\b/);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
  }
});

test('a client that disconnects in the middle of its body affects no one', async () => {
  await using na = await startTestAuthority();
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

for (const path of [
  '/attestations/verify',
  '/attestations/verify-with-treaty',
  '/recognition-treaties/verify',
  '/agreements/verify',
  '/boundary/verify',
  '/trust-evidence/verify',
  '/disclosure/prove',
  '/disclosure/verify',
  '/consensus/verify',
  '/data-usage/verify',
]) {
  test(`POST ${path} accepts no body of more than 512 KiB, however much others accept`, async () => {
    const na = await common();
    const fill = (bytes: number) => `{"x":"${'x'.repeat(bytes - 8)}"}`;
    const fits = await send(na, 'POST', path, { body: fill(512 * 1024) });
    assert.equal(fits.status, 400);
    const tooLarge = await send(na, 'POST', path, { body: fill(512 * 1024 + 1) });
    assert.equal(outcome(tooLarge), '413 request_entity_too_large');
  });
}
