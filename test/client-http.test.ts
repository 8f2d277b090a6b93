/** How the client handles late, lost and refused answers; a caller may supply its own `fetch`, as this test does. */
import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { httpFetch } from '../src/cli/connection/server.ts';
import { AddressError, AuthorityError, type ErrorCode } from '../src/client/authority-error.ts';
import { readEvents } from '../src/client/events.ts';
import { newKey } from '../src/client/keys.ts';
import { createNodeClient } from '../src/client/node-client.ts';
import { pagesOf } from '../src/client/operations.ts';
import { createOperatorClient } from '../src/client/operator-client.ts';
import type { Fetch } from '../src/client/options.ts';
import { createPublicClient } from '../src/client/public-client.ts';
import { PROJECT } from './support/project.ts';

const url = 'http://authority.example';

function envelope(status: number, code: string, headers: Record<string, string> = {}): Response {
  const text = JSON.stringify({ error: { code, message: code, details: {}, request_id: 'r' } });
  return new Response(text, { status, headers: { 'x-request-id': 'r', ...headers } });
}

/** Returns the given answers in turn; null, or no answer left, is a failed connection. */
function scripted(...answers: (Response | null)[]) {
  const bodies: string[] = [];
  const waits: number[] = [];
  const marks: (string | null)[] = [];
  const fetch: Fetch = async (_url, { body, headers }) => {
    bodies.push(String(body));
    marks.push(new Headers(headers).get('x-mesh-retry'));
    const next = answers.shift();
    if (next === null || next === undefined) throw new TypeError('fetch failed');
    return next;
  };
  const wait = async (ms: number) => void waits.push(ms);
  return { bodies, marks, waits, options: { url, fetch, wait } };
}

async function failure(work: Promise<unknown>): Promise<AuthorityError> {
  const error = await work.catch((cause) => cause);
  assert.ok(error instanceof AuthorityError, String(error));
  return error;
}

const count = () => new Response('{"count":3}');

test('a read is repeated until it is answered, and waits as long as the authority asks', async () => {
  const busy = envelope(429, 'rate_limit_exceeded', { 'retry-after': '7' });
  const { waits, options } = scripted(null, busy, count());
  assert.equal((await createPublicClient(options).countNodes()).count, 3);
  assert.equal(waits.length, 2);
  assert.ok((waits[0] ?? 0) < 1000 && (waits[1] ?? 0) >= 7000);
});

test('a patient caller waits for a limit only as long in total as specified, and is informed of each wait', async () => {
  const busy = (seconds: string) =>
    envelope(429, 'rate_limit_exceeded', { 'retry-after': seconds });
  const reported: number[] = [];
  const patience = {
    retries: 0,
    patienceMs: 100_000,
    onLimited: (ms: number) => reported.push(ms),
  };
  const served = scripted(busy('40'), busy('40'), count());
  assert.equal(
    (await createPublicClient({ ...served.options, ...patience }).countNodes()).count,
    3,
  );
  assert.deepEqual(reported, served.waits);
  assert.equal(reported.length, 2);
  const refused = scripted(busy('40'), busy('40'), busy('40'), count());
  const client = createPublicClient({ ...refused.options, ...patience });
  assert.equal((await failure(client.countNodes())).retryAfter, 40);
  assert.equal(refused.waits.length, 2);
  const backwards = scripted(...Array.from({ length: 30 }, () => busy('-1000000')));
  const other = createPublicClient({ ...backwards.options, ...patience });
  assert.equal((await failure(other.countNodes())).status, 429);
  assert.ok(
    backwards.bodies.length < 15,
    'an authority cannot keep a caller by asking for nothing',
  );
});

test('a list whose cursor comes again ends with an error that names it', async () => {
  for (const cursors of [
    ['a', 'a'],
    ['a', 'b', 'a'],
    ['a', '', ''],
  ]) {
    const pages = [...cursors];
    const read = async () => ({ rows: [1], next_cursor: pages.shift() ?? 'too far' });
    const rows: number[] = [];
    const reading = (async () => {
      for await (const page of pagesOf(read, (page) => page.rows)) rows.push(...page);
    })();
    const error = await failure(reading);
    assert.equal(error.code, 'unreadable_answer');
    assert.match(error.message, new RegExp(`next_cursor ${cursors.at(-1)} came before$`));
    assert.equal(rows.length, cursors.length);
  }
});

for (const id of ['..', '.', '', '%2e%2E']) {
  test(`the id ${JSON.stringify(id)} is sent to its own route or to none`, async () => {
    const asked: string[] = [];
    const fetch: Fetch = async (address) => {
      asked.push(new URL(address).pathname);
      return envelope(404, 'not_found');
    };
    const options = { url, fetch, audience: 'a', keyId: 'ops', key: newKey() };
    const operator = createOperatorClient(options);
    const calls = [
      operator.revokeTreaty({ treaty_id: id }),
      operator.setOperatorKeyTier({ key_id: id, tier: 'standard' }),
      operator.readCertificate({ cert_id: id }),
      createPublicClient(options).readTreaty({ treaty_id: id }),
      operator.request({
        method: 'POST',
        path: `/admin/attestations/${encodeURIComponent(id)}/revoke`,
      }),
    ];
    const errors: unknown[] = await Promise.all(
      calls.map((each: Promise<unknown>) => each.catch((cause: unknown) => cause)),
    );
    if (id === '%2e%2E') {
      assert.ok(errors.every((error) => error instanceof AuthorityError));
      assert.ok(asked.every((path) => path.includes('%252e%252E')));
      return;
    }
    assert.ok(
      errors.every((error) => error instanceof AddressError),
      String(errors),
    );
    assert.deepEqual(asked, []);
  });
}

test('a heartbeat is repeated with a new nonce', async () => {
  const ack = new Response('{"ack":true,"server_time":"2026-01-01T00:00:00Z"}');
  const { bodies, options } = scripted(null, ack);
  const node = createNodeClient({ ...options, key: newKey(), audience: 'a' });
  assert.equal((await node.heartbeat({ cert_id: 'c' })).ack, true);
  const [first, second] = bodies.map((body) => JSON.parse(body).nonce);
  assert.notEqual(first, second);
});

test('a join whose answer is lost is sent again byte for byte, and reports it', async () => {
  const lost = scripted(
    null,
    envelope(503, 'internal_server_error'),
    envelope(409, 'already_done'),
  );
  const node = createNodeClient({ ...lost.options, key: newKey() });
  assert.equal((await failure(node.join({ invite_token: 't' }))).code, 'already_done');
  assert.equal(lost.bodies.length, 3);
  assert.equal(new Set(lost.bodies).size, 1);
  assert.deepEqual(lost.marks, [null, '1', '1']);
});

test('a join is signed again if the authority refused to begin, unless an earlier answer was lost', async () => {
  const join = { invite_token: 't' };
  const stopping = scripted(envelope(503, 'shutting_down'), envelope(403, 'invalid_invite_token'));
  const first = createNodeClient({ ...stopping.options, key: newKey() });
  assert.equal((await failure(first.join(join))).code, 'invalid_invite_token');
  assert.equal(new Set(stopping.bodies).size, 2);
  assert.deepEqual(stopping.marks, [null, null]);
  const both = scripted(
    null,
    envelope(503, 'shutting_down'),
    envelope(403, 'invalid_invite_token'),
  );
  const second = createNodeClient({ ...both.options, key: newKey() });
  await failure(second.join(join));
  assert.equal(new Set(both.bodies).size, 1);
  assert.deepEqual(both.marks, [null, '1', '1']);
});

test('the removal of an agent, whose answer is not kept, is not repeated if its answer is lost', async () => {
  const lost = scripted(null, count());
  const node = createNodeClient({ ...lost.options, key: newKey() });
  assert.equal((await failure(node.unregisterAgent())).code, 'unreachable');
  assert.equal(lost.bodies.length, 1);
});

for (const [what, answer, status, code, retryable] of [
  ['a refusal', () => envelope(404, 'attestation_not_found'), 404, 'attestation_not_found', false],
  ['a code of a later version', () => envelope(400, 'novel'), 400, 'unknown_code', false],
  [
    'a page of a proxy',
    () => new Response('<p>', { status: 403 }),
    403,
    'unreadable_answer',
    false,
  ],
  ['an answer of another shape', () => new Response('{}'), 200, 'unreadable_answer', false],
  [
    'a wait of an hour',
    () => envelope(429, 'rate_limit_exceeded', { 'retry-after': '3600' }),
    429,
    'rate_limit_exceeded',
    true,
  ],
] as const satisfies readonly (readonly [string, () => Response, number, ErrorCode, boolean])[]) {
  test(`${what} is an error with status, code and whether it is temporary`, async () => {
    const { bodies, options } = scripted(answer(), count());
    const error = await failure(
      createPublicClient(options).readAttestation({ attestation_id: 'a' }),
    );
    assert.deepEqual([error.status, error.code, error.retryable], [status, code, retryable]);
    assert.equal(bodies.length, 1);
  });
}

const silent: Fetch = (_url, { signal }) =>
  new Promise((_resolve, reject) => {
    signal?.throwIfAborted();
    signal?.addEventListener('abort', () => reject(signal.reason));
  });

test('a call ends when its signal is aborted, and when it times out', async () => {
  const client = createPublicClient({ url, fetch: silent, retries: 0 });
  const stop = new AbortController();
  const call = failure(client.crl({ signal: stop.signal }));
  stop.abort();
  const aborted = await call;
  assert.deepEqual([aborted.code, aborted.retryable], ['aborted', false]);
  const late = await failure(client.crl({ timeoutMs: 5 }));
  assert.deepEqual([late.code, late.retryable], ['timeout', true]);
});

test('a signal that many calls were given keeps nothing of them', async () => {
  const stop = new AbortController();
  const used: WeakRef<AbortSignal>[] = [];
  const answering: Fetch = async (_url, { signal }) => {
    // As the global fetch does, which does not remove its listener.
    signal.addEventListener('abort', () => undefined);
    used.push(new WeakRef(signal));
    return count();
  };
  const client = createPublicClient({ url, fetch: answering });
  for (let call = 0; call < 20; call += 1) await client.countNodes({ signal: stop.signal });
  await setImmediate();
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  assert.ok(used.filter((signal) => signal.deref() !== undefined).length <= 1);
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0);
});

test('many calls at once have one listener on the signal that they were given', async () => {
  const stop = new AbortController();
  const client = createPublicClient({ url, fetch: silent });
  const { signal } = stop;
  const calls = Array.from({ length: 20 }, () => failure(client.crl({ signal })));
  await setImmediate();
  assert.equal(getEventListeners(signal, 'abort').length, 1);
  stop.abort();
  const codes = (await Promise.all(calls)).map(({ code }) => code);
  assert.deepEqual(codes, Array(20).fill('aborted'));
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('a key that does not produce 64 bytes is detected before anything is sent', async () => {
  const { bodies, options } = scripted(count());
  const key = { publicKey: newKey().publicKey, sign: async () => new Uint8Array(3) };
  const node = createNodeClient({ ...options, key });
  await assert.rejects(node.join({ invite_token: 't' }), TypeError);
  assert.equal(bodies.length, 0);
});

// Responses of a real server whose bodies never end: neither a call nor its connection outlives its timeout or abort.

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
