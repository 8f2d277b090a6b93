/** What one connection carries: pipelined requests, and requests with misleading headers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { rawConnection } from './support/raw-http.ts';
import { sharedAuthority } from './support/shared-authority.ts';

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
