/**
 * Responses of a real server whose bodies never end: neither a call nor its connection outlives its timeout or abort.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { httpFetch } from '../src/cli/connection/server.ts';
import { AuthorityError } from '../src/client/authority-error.ts';
import { readEvents } from '../src/client/events.ts';
import type { Fetch } from '../src/client/options.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { PROJECT } from './support/project.ts';

/**
 * Behaves like the `fetch` of Node.js 20 with `redirect: 'error'`, which loses its signal if garbage is collected while
 * the answer is read.
 */
const forgetsSignal: Fetch = (url, { signal: _forgotten, ...init }) => fetch(url, init);

const MIB = 1024 * 1024;

const unsigned = async () => ({});

/** The error of the call. */
async function errorOf(call: Promise<unknown>): Promise<AuthorityError> {
  const error = await call.then(() => null).catch((cause: unknown) => cause);
  assert.ok(error instanceof AuthorityError, String(error));
  return error;
}

const vectors = readFileSync(new URL('test/vectors/events.json', PROJECT), 'utf8');
const [FIRST_EVENT]: string[] = JSON.parse(vectors).vectors.lines.split('\n').filter(Boolean);

for (const [name, ask] of [
  ['the global fetch', fetch],
  ['a fetch that forgets its signal', forgetsSignal],
  ['the fetch of the command line', httpFetch(undefined)],
] as const) {
  suite(`an answer without an end, read by ${name},`, () => {
    test('is no longer an answer when the call times out', async () => {
      await using server = await listen((answer) => answer.write('{"count":'));
      const client = createPublicClient({ url: server.url, fetch: ask, retries: 0 });
      assert.equal((await errorOf(client.countNodes({ timeoutMs: 100 }))).code, 'timeout');
      await server.isLeft();
    });

    test('is abandoned when the call is aborted', async () => {
      const stop = new AbortController();
      await using server = await listen((answer) => answer.write('{"count":'));
      const client = createPublicClient({ url: server.url, fetch: ask, retries: 0 });
      const error = errorOf(client.countNodes({ signal: stop.signal }));
      await server.isReached();
      stop.abort();
      assert.equal((await error).code, 'aborted');
      await server.isLeft();
    });

    test('is refused beyond the bound of its route, and nothing more of it is read', async () => {
      const piece = Buffer.alloc(64 * 1024, ' ');
      let sent = 0;
      const flood = (answer: ServerResponse): void => {
        sent += piece.length;
        if (!answer.destroyed) answer.write(piece, () => flood(answer));
      };
      await using server = await listen(flood);
      const client = createPublicClient({ url: server.url, fetch: ask });
      const { code, message } = await errorOf(client.readGenesis());
      assert.equal(code, 'unreadable_answer');
      assert.match(message, /^The answer has more than 16 MiB, and no network authority/);
      await server.isLeft();
      assert.ok(sent > 16 * MIB && sent < 40 * MIB, String(sent));
    });

    test('is refused by its length before it is read', async () => {
      await using server = await listen((answer) => answer.write('{'), {
        'content-length': String(512 * MIB),
      });
      const client = createPublicClient({ url: server.url, fetch: ask });
      assert.match((await errorOf(client.crl())).message, /^The answer has more than 256 MiB/);
      await server.isLeft();
    });

    test('is abandoned by a reader of events who aborts, who breaks off, or who hears nothing more', async () => {
      await using server = await listen((answer) => answer.write(`:\n\ndata: ${FIRST_EVENT}\n\n`));
      const authority = { url: server.url, fetch: ask };
      const stop = new AbortController();
      const { signal } = stop;
      for await (const _ of readEvents(authority, unsigned, { signal })) stop.abort();
      await server.isLeft();
      for await (const _ of readEvents(authority, unsigned, {})) break;
      await server.isLeft();
      const lost = new AbortController();
      const onLost = () => lost.abort();
      const silent = { timeoutMs: 100, signal: lost.signal, onLost };
      for await (const _ of readEvents(authority, unsigned, silent));
      await server.isLeft();
    });
  });
}

test('an answer that was compressed is bounded as it is read, and so is an error', async () => {
  const bomb = gzipSync(Buffer.alloc(32 * MIB, ' '));
  const zipped = { 'content-encoding': 'gzip' };
  await using server = await listen((answer) => answer.end(bomb), zipped);
  const genesis = createPublicClient({ url: server.url }).readGenesis();
  assert.match((await errorOf(genesis)).message, /^The answer has more than 16 MiB/);
  const failing: Fetch = async () => new Response(Buffer.alloc(17 * MIB, ' '), { status: 404 });
  const list = createPublicClient({ url: server.url, fetch: failing }).crl();
  assert.match((await errorOf(list)).message, /^The answer has more than 16 MiB/);
});

test('an answer with more values than any has is refused', async () => {
  const values: Fetch = async () => new Response(`{"a":[${'0,'.repeat(2 ** 21)}0]}`);
  const health = createPublicClient({ url: 'http://na', fetch: values }).readHealth();
  assert.equal((await errorOf(health)).code, 'unreadable_answer');
});

interface Server extends AsyncDisposable {
  readonly url: string;
  isReached(): Promise<void>;
  /** Resolves when the connection of each of its answers is closed. */
  isLeft(): Promise<void>;
}

async function listen(
  begin: (answer: ServerResponse) => void,
  headers: OutgoingHttpHeaders = {},
): Promise<Server> {
  const open = new Set<ServerResponse>();
  let left = () => {};
  const server = createServer((_request, answer) => {
    open.add(answer);
    answer.once('close', () => {
      open.delete(answer);
      left();
    });
    answer.writeHead(200, { 'content-type': 'application/json', ...headers });
    begin(answer);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const reached = once(server, 'request');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    isReached: async () => void (await reached),
    async isLeft() {
      while (open.size > 0) {
        await new Promise<void>((resolve) => {
          left = resolve;
        });
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
