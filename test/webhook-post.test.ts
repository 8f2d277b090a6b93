/** What a webhook endpoint can do to the service that posts to it [events-5]: not much. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { createStrangerClient, type StrangerClient } from '../src/server/outbound/client.ts';
import { createLookup, isPublicAddress } from '../src/server/outbound/lookup.ts';
import { webhookReach } from '../src/server/webhooks/settings.ts';
import { type Behavior, floods, listen, says } from './support/odd-server.ts';
import { makeTlsPair } from './support/tls-files.ts';

/** Far longer than an answer takes on a busy machine. */
const LIMIT_MS = 60_000;
/** For endpoints that never answer. */
const SHORT_LIMIT_MS = 400;
const LATE = 'it took longer than 0.4 s';
const NEVER = new AbortController().signal;

const CASES: readonly (readonly [what: string, does: Behavior, problem: string | null])[] = [
  ['takes it', says('HTTP/1.1 204 No Content\r\n\r\n'), null],
  ['takes it with a few words', says('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'), null],
  ['takes it, and ends with the connection', says('HTTP/1.1 200 OK\r\n\r\nok', true), null],
  ['answers 500', says('HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n'), 'it answered 500'],
  ['answers 400', says('HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n'), 'it answered 400'],
  [
    'redirects',
    says('HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n'),
    'it redirects (307), and redirects are not followed',
  ],
  ['says nothing', () => undefined, LATE],
  [
    'never ends its head',
    floods('HTTP/1.1 200 OK\r\n', `X-A: ${'a'.repeat(100)}\r\n`),
    'HPE_HEADER',
  ],
  ['says half of its head', says('HTTP/1.1 200 OK\r\nX-A:'), LATE],
  [
    'says half of its body, and waits',
    says('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'),
    LATE,
  ],
  [
    'closes in the middle of its body',
    says('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', true),
    'it closed the connection before its answer was complete',
  ],
  ['closes at once', (socket) => socket.destroy(), 'ECONNRESET'],
  ['closes before it answers', (socket) => socket.end(), 'ECONNRESET'],
  ['speaks another protocol', says('220 mail.example ESMTP\r\n'), 'HPE_INVALID'],
  ['upgrades', says('HTTP/1.1 101 Up\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'), 'it '],
  [
    'takes it, with a body without an end',
    floods('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '5\r\nhello\r\n'),
    null,
  ],
  [
    'refuses it, with a body without an end',
    floods('HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n', '5\r\nhello\r\n'),
    'it answered 500',
  ],
  [
    'says for ever that it goes on',
    floods('', 'HTTP/1.1 102 Processing\r\n\r\n'),
    'it sends interim responses endlessly',
  ],
];

suite('an endpoint that', () => {
  for (const [what, does, problem] of CASES) {
    test(`${what} is judged by its answer, and blocks nothing`, async () => {
      await using endpoint = await listen(does);
      const limitMs = problem === LATE ? SHORT_LIMIT_MS : LIMIT_MS;
      const found = await postTo(endpoint.url, { limitMs });
      if (problem === null) assert.equal(found, null);
      else assert.ok(found?.includes(problem), `${found}`);
      await endpoint.allClosed();
    });
  }
});

test('consecutive requests share a connection, and a stopped one is not reused', async () => {
  await using endpoint = await listen(says('HTTP/1.1 204 No Content\r\n\r\n'));
  const lookup = createLookup(webhookReach(true));
  const poster = createStrangerClient({ lookup, limitMs: LIMIT_MS });
  for (let posted = 0; posted < 5; posted += 1) {
    assert.equal(await post(poster, endpoint.url), null);
  }
  assert.equal(endpoint.connections(), 1);
  poster.close();
  await endpoint.allClosed();

  await using silent = await listen(() => undefined);
  const waiting = createStrangerClient({ lookup });
  const stop = new AbortController();
  const found = post(waiting, silent.url, stop.signal);
  await silent.isReached();
  stop.abort();
  assert.equal(await found, 'the service is stopping');
  assert.equal(await post(waiting, silent.url, stop.signal), 'the service is stopping');
  await silent.allClosed();
});

test('private addresses are never connected to, whatever name leads there', async () => {
  await using endpoint = await listen(says('HTTP/1.1 204 No Content\r\n\r\n'));
  const named = endpoint.url.replace('127.0.0.1', 'localhost');
  assert.match(
    (await postTo(named, { allowsPrivate: false })) ?? '',
    /^its name resolves to a private address/,
  );
  assert.equal(endpoint.connections(), 0);
  assert.equal(await postTo(named), null);
});

test('a name whose address changes a moment later is connected to where it was checked', async () => {
  await using endpoint = await listen(says('HTTP/1.1 204 No Content\r\n\r\n'));
  let asked = 0;
  const url = endpoint.url.replace('127.0.0.1', 'rebinds.invalid');
  const poster = createStrangerClient({
    limitMs: LIMIT_MS,
    lookup(_host, options, answer) {
      asked += 1;
      const address = { address: asked === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 };
      if (options.all === true) answer(null, [address]);
      else answer(null, address.address, address.family);
    },
  });
  assert.equal(await post(poster, url), null);
  assert.equal(asked, 1, 'the address is asked for once, and that is the one that is used');
  poster.close();
});

test('an unknown name, and a port without a listener, are reported with their codes', async () => {
  assert.match((await postTo('http://nobody.invalid/')) ?? '', /^the connection failed \(E/);
  const endpoint = await listen(() => undefined);
  await endpoint[Symbol.asyncDispose]();
  assert.equal(await postTo(endpoint.url), 'the connection failed (ECONNREFUSED)');
});

test('a certificate of an unknown issuer is refused before anything is sent', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-webhook-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { certFile, keyFile } = makeTlsPair(folder, 'hooks');
  let requests = 0;
  const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  const server = createHttpsServer(pair, (_request, answer) => {
    requests += 1;
    answer.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  assert.equal(
    await postTo(url),
    'the connection failed (DEPTH_ZERO_SELF_SIGNED_CERT): its certificate is of a CA that is unknown here; NODE_EXTRA_CA_CERTS can name it',
  );
  assert.equal(requests, 0);
});

test('an address is public when everyone can reach it', () => {
  for (const address of [
    ...['8.8.8.8', '1.1.1.1', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::808:808'],
  ]) {
    assert.equal(isPublicAddress(address), true, address);
  }
  for (const address of [
    ...['127.0.0.1', '127.1.2.3', '10.0.0.1', '172.16.0.1', '192.168.1.1', '169.254.169.254'],
    ...['100.64.0.1', '0.0.0.0', '0.1.2.3', '192.0.2.1', '198.18.0.1', '224.0.0.1', '240.0.0.1'],
    ...['255.255.255.255', '::', '::1', 'fe80::1', 'fe80::1%lo', 'fc00::1', 'fd12::1', 'fec0::1'],
    ...['168.63.129.16', '::ffff:168.63.129.16', '64:ff9b::a83f:8110', '100.100.100.200'],
    ...['192.0.0.192', 'fd00:ec2::254', 'fd20:ce::254', '::10.0.0.1', '::8.8.8.8'],
    ...['::ffff:0:8.8.8.8', '2001:0:a00:1::', '2002:a00:1::1', '4000::1', '5f00::1', '3fff::1'],
    ...['ff02::1', '2001:db8::1', '::ffff:127.0.0.1', '::ffff:a00:1', '::127.0.0.1'],
    ...['64:ff9b::a00:1', '64:ff9b:1::808:808', '2002:7f00:1::', '2001::1', '100::1'],
    ...['', 'localhost'],
  ]) {
    assert.equal(isPublicAddress(address), false, address);
  }
});

/** Posts once. */
async function postTo(
  url: string,
  { allowsPrivate = true, limitMs = LIMIT_MS } = {},
): Promise<string | null> {
  const lookup = createLookup(webhookReach(allowsPrivate));
  const poster = createStrangerClient({ lookup, limitMs });
  try {
    return await post(poster, url);
  } finally {
    poster.close();
  }
}

async function post(client: StrangerClient, url: string, abort = NEVER): Promise<string | null> {
  const headers = { 'Content-Type': 'application/x-ndjson' };
  const sent = { url: new URL(url), body: '{"entry":{}}\n', headers, abort };
  return (await client.exchange(sent)).problem;
}
