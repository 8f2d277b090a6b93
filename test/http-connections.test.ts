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
