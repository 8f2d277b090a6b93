/** What one connection carries: requests one behind another, and requests that are not what they say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { rawConnection } from './support/raw-http.ts';

test('C4: a connection goes on after HEAD, 60 times of 60', async () => {
  await using na = await startTestAuthority();
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

for (const [path, status] of [
  ['/nowhere', 404],
  ['/join', 405],
] as const) {
  test(`C4: a connection goes on after HEAD ${path}, which is ${status}`, async () => {
    await using na = await startTestAuthority();
    using connection = await rawConnection(na.url);
    connection.write(`HEAD ${path} HTTP/1.1\r\nHost: na\r\n\r\n`);
    assert.match(await connection.until('\r\n\r\n'), new RegExp(`^HTTP/1\\.1 ${status} `));
    connection.write('GET /healthz HTTP/1.1\r\nHost: na\r\n\r\n');
    assert.match(await connection.until('"status"'), /"status"/);
  });
}

for (const [name, lines, body] of [
  ['a Transfer-Encoding that only begins like chunked', ['Transfer-Encoding: chunkedx'], chunks()],
  ['two codings', ['Transfer-Encoding: gzip, chunked'], chunks()],
  ['Transfer-Encoding: identity', ['Transfer-Encoding: identity'], 'abc'],
  ['differing Content-Length lines', ['Content-Length: 3', 'Content-Length: 5'], 'abcde'],
  ['two Transfer-Encoding lines', ['Transfer-Encoding: chunked', 'Transfer-Encoding: x'], chunks()],
  ['both lengths', ['Transfer-Encoding: chunked', 'Content-Length: 3'], chunks()],
] as const) {
  for (const start of ['POST /join', 'GET /healthz', 'POST /nowhere']) {
    test(`C6: ${start} with ${name} is refused behind a proxy, and its connection ends`, async () => {
      await using na = await startTestAuthority({ environment: { MESH_PROXY_HOPS: '1' } });
      using connection = await rawConnection(na.url);
      connection.write(
        `${[`${start} HTTP/1.1`, 'Host: na', ...lines].join('\r\n')}\r\n\r\n${body}`,
      );
      const received = await connection.closed();
      assert.match(received, /^HTTP\/1\.1 400 /);
      assert.equal(received.match(/HTTP\/1\.1 /g)?.length, 1, received);
    });
  }
}

test('C6: a client without a proxy cannot send other codings than chunked either', async () => {
  await using na = await startTestAuthority();
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
