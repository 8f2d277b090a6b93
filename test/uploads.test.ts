/** Request bodies in transit: their memory bounds, and which ones are dropped. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createUploads, type UploadLimits, type Uploads } from '../src/edge/http/uploads.ts';
import type { ReceivedBody } from '../src/edge/request/parse.ts';
import { type RawConnection, rawConnection } from './support/raw-http.ts';
import { listenApp } from './support/uws-app.ts';

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
