/** `restore plan` reads records from URLs whose servers may answer anything. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { readJsonUrl } from '../src/cli/connection/server.ts';
import { runProgram } from './support/child-server.ts';
import { scratchFolder } from './support/folders.ts';
import { type Behavior, floods, listen, says } from './support/odd-server.ts';
import { makeTlsPair } from './support/tls-files.ts';

const BOUNDS = { longestMs: 300, mostBytes: 100_000, mostValues: 1000 };
/** For servers that are abandoned for another reason than time, because a busy machine may take longer. */
const NO_HURRY = { ...BOUNDS, longestMs: 60_000 };
const TOO_LONG = /it took longer than 0.3 s$/;
const OK = 'HTTP/1.1 200 OK\r\n';

const drips = (socket: Socket): void => {
  socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n`);
  const timer = setInterval(() => socket.write('1\r\n \r\n'), 10);
  socket.once('close', () => clearInterval(timer));
};

const CASES: readonly (readonly [what: string, does: Behavior, reason: RegExp])[] = [
  ['nothing', () => undefined, TOO_LONG],
  ['half of a head', says(`${OK}X-A:`), TOO_LONG],
  ['a body that drips', drips, TOO_LONG],
  ['a head without an end', floods(OK, `X-A: ${'a'.repeat(100)}\r\n`), /Header overflow/],
  [
    'a body without an end',
    floods(`${OK}Transfer-Encoding: chunked\r\n\r\n`, '5\r\n     \r\n'),
    /the answer has more than 100000 bytes$/,
  ],
  [
    'more values than a list has',
    says(`${OK}Connection: close\r\nContent-Length: 3005\r\n\r\n[${'[],'.repeat(1000)}[]] `),
    /There are too many values/,
  ],
  [
    'an error',
    says('HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'),
    /the server answered 500$/,
  ],
  [
    'a way to another place',
    says('HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'),
    /unexpected redirect$/,
  ],
  [
    'no JSON',
    says(`${OK}Connection: close\r\nContent-Length: 6\r\n\r\n<html>`),
    /A value is expected at position 0$/,
  ],
  ['the end of the connection', (socket) => socket.destroy(), /hang up|ECONNRESET/],
];

for (const [what, does, reason] of CASES) {
  test(`a server that answers with ${what} is abandoned within the limits, which are named`, async () => {
    await using server = await listen(does);
    const bounds = reason === TOO_LONG ? BOUNDS : NO_HURRY;
    await assert.rejects(readJsonUrl(server.url, undefined, bounds), (error: Error) => {
      assert.match(error.message, /^http:\S+ cannot be read: [^\n]+$/);
      assert.match(error.message, reason);
      return true;
    });
    await server.allClosed();
  });
}

test('where no one can be asked, one sentence says what a restore must be given', async () => {
  const server = await listen(() => undefined);
  await server[Symbol.asyncDispose]();
  const args = ['restore', 'plan', '--backup', '/nothing', '--crl', server.url];
  const { code, stderr } = await runProgram(args);
  assert.equal(code, 5, stderr);
  assert.match(stderr, /^mesh-na: http:\S+ cannot be read: connect ECONNREFUSED [^\n]+\n$/);
});

test('a list behind a certificate of a private authority is read with --ca', async (t) => {
  await using folder = scratchFolder();
  const { certFile, keyFile } = makeTlsPair(folder.path, 'node');
  const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  const server = createSecureServer(pair, (_request, response) => void response.end('{}'));
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/crl`;
  const args = ['restore', 'plan', '--backup', join(folder.path, 'none'), '--crl', url];
  const [unknown, trusted] = await Promise.all([
    runProgram(args),
    runProgram([...args, '--ca', certFile]),
  ]);
  assert.equal(unknown.code, 5);
  assert.match(unknown.stderr, /cannot be read: self-signed certificate/);
  assert.equal(trusted.code, 3);
  assert.match(trusted.stderr, /none cannot be read \(ENOENT\)/);
});
