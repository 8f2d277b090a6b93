/** Webhooks [events-5]: the audit log is posted as it grows, in order and without omissions, whatever an endpoint does. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { SHA256, sha256Hex } from '../src/base/crypto/digest.ts';
import { signerFromSeed, verifySignature } from '../src/base/crypto/ed25519.ts';
import type { EventPlace } from '../src/client/events.ts';
import { readWebhook } from '../src/client/webhook.ts';
import { webhookProof, webhookProofText } from '../src/protocol/records/webhook-proof.ts';
import { loadConfig } from '../src/server/config/load.ts';
import type { Environment } from '../src/server/config/options.ts';
import { createStrangerClient, type StrangerClient } from '../src/server/outbound/client.ts';
import { createLookup, isPublicAddress } from '../src/server/outbound/lookup.ts';
import { webhookReach } from '../src/server/webhooks/settings.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { type ChildServer, NO_LIMITS, startChildServer } from './support/child-server.ts';
import { HOUR, MINUTE, REAL_TIME, testClock } from './support/clock.ts';
import { networkFolder } from './support/folders.ts';
import { indexesOf, invites, numbers } from './support/logged-events.ts';
import { untilMetric } from './support/metrics.ts';
import { type Behavior, floods, listen, says } from './support/odd-server.ts';
import { get, invite, operate } from './support/requests.ts';
import { issueTlsPair, type MadePair, makeIssuer, makeTlsPair } from './support/tls-files.ts';
import { until } from './support/until.ts';
import { readVectors } from './support/vectors.ts';
import { startReceiver, type WebhookReceiver } from './support/webhook-receiver.ts';

for (const threads of ['1', '2']) {
  suite(`a webhook, with ${threads === '1' ? 'one thread' : 'several threads'}`, () => {
    test('gets what happens from now on, each entry once and in order, and each request is signed', async () => {
      await using house = await openHouse();
      await using before = await house.start();
      await invites(before, 2);
      await before.stop();
      await using hook = await house.receiver();
      await using na = await house.start({ MESH_WEBHOOKS: hook.url, MESH_THREADS: threads });
      await invites(na, 1);
      await hook.until(3);
      await operate(na, '/admin/invite', { count: 300 });
      await invites(na, 3);
      await hook.until(306);
      assert.deepEqual(indexesOf(hook.events), numbers(3, 306));
      assert.deepEqual([hook.refused, hook.posted], [[], 304]);
    });
  });
}

test('a webhook begins where the setting says, and reads a long log in limited requests', async () => {
  await using house = await openHouse();
  await using before = await house.start();
  const roles = Array.from({ length: 64 }, (_, index) => `role:${index}-${'x'.repeat(100)}`);
  await operate(before, '/admin/invite', { count: 20, roles });
  await operate(before, '/admin/invite', { count: 130 });
  await before.stop();
  await using hook = await house.receiver();
  await using _na = await house.start({ MESH_WEBHOOKS: hook.url, MESH_WEBHOOK_AFTER: '0' });
  const size = 150;
  await hook.until(size);
  assert.deepEqual(indexesOf(hook.events), numbers(1, size));
  assert.deepEqual(hook.refused, []);
  assert.ok(hook.requests >= 2, `${hook.requests} requests`);
});

test('a webhook that is new after the end of the log begins at its end', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  await using na = await house.start({ MESH_WEBHOOKS: hook.url, MESH_WEBHOOK_AFTER: '1000000' });
  await invites(na, 2);
  await hook.until(2);
  assert.deepEqual(indexesOf(hook.events), [1, 2]);
});

test('over stops, starts and outages of the receiver, nothing is lost or omitted', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  let na = await house.start({ MESH_WEBHOOKS: hook.url });
  await using _last = { [Symbol.asyncDispose]: () => na.stop() };
  await invites(na, 3);
  await hook.until(3);
  na = await na.restart();
  await invites(na, 2);
  hook.behavior = (_request, answer) => answer.writeHead(500).end();
  await invites(na, 2);
  na = await na.restart();
  await invites(na, 2);
  hook.behavior = null;
  na = await na.restart();
  await invites(na, 1);
  await hook.until(10);
  assert.deepEqual(indexesOf(hook.events), numbers(1, 10));
  assert.deepEqual(hook.refused, []);
});

test('a webhook that is removed is forgotten, and begins at the end when it comes back', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  await using other = await house.receiver();
  const both = { MESH_WEBHOOKS: ` ${hook.url}  ${other.url} ` };
  await using first = await house.start(both);
  await invites(first, 1);
  await Promise.all([hook.until(1), other.until(1)]);
  await first.stop();
  await using second = await house.start({ MESH_WEBHOOKS: other.url });
  await invites(second, 2);
  await other.until(3);
  assert.match((await get(second, '/metrics')).text, /^mesh_na_subjects\{kind="webhook"\} 1$/m);
  await second.stop();
  await using third = await house.start(both);
  await invites(third, 1);
  await other.until(4);
  while (hook.requests < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(indexesOf(other.events), [1, 2, 3, 4]);
  assert.deepEqual(hook.refused, ['gap'], 'it says that two are missing');
});

test('an endpoint that never answers delays neither commands, nor other webhooks, nor a stop', async () => {
  await using house = await openHouse();
  await using silent = await house.receiver();
  silent.behavior = () => undefined;
  await using hook = await house.receiver();
  await using na = await house.start({ MESH_WEBHOOKS: `${silent.url} ${hook.url}` });
  await invites(na, 30);
  await hook.until(30);
  // What is unanswered at a stop is posted again.
  await untilMetric(na, `mesh_na_webhook_delivered_events_total{host="${hook.host}"} 30`);
  assert.equal(silent.requests, 1, 'one request is under way at a time');
  await na.stop();
  silent.behavior = null;
  await using again = await na.restart();
  await silent.until(30);
  assert.deepEqual(indexesOf(silent.events), numbers(1, 30));
  assert.equal(hook.posted, 30);
  assert.ok(again.logLines.length > 0);
});

test('failures are counted and shown only by hostname, logged once, and tried again', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  hook.behavior = (_request, answer) => answer.writeHead(503).end('token=not-for-logs');
  await using na = await house.start({ MESH_WEBHOOKS: hook.url });
  await invites(na, 2);
  await untilMetric(na, `mesh_na_webhook_lag_entries{host="${hook.host}"} 2`);
  while (!na.logLines.join('').includes('cannot be posted')) await get(na, '/healthz');
  na.clock.advance(20 * MINUTE);
  await untilMetric(na, `mesh_na_webhook_lag_seconds{host="${hook.host}"} 1200`);
  await untilMetric(na, 'mesh_na_posture_finding{rule="webhooks"} 1');
  na.clock.advance(24 * HOUR);
  await untilMetric(na, 'mesh_na_posture_finding{rule="webhooks"} 2');
  hook.behavior = null;
  await hook.until(2);
  const failures = new RegExp(
    `^mesh_na_webhook_failures_total\\{host="${hook.host}"\\} [1-9]`,
    'm',
  );
  assert.match((await get(na, '/metrics')).text, failures);
  await untilMetric(na, `mesh_na_webhook_delivered_events_total{host="${hook.host}"} 2`);
  await untilMetric(na, `mesh_na_webhook_lag_entries{host="${hook.host}"} 0`);
  await untilMetric(na, `mesh_na_webhook_lag_seconds{host="${hook.host}"} 0`);
  await untilMetric(na, 'mesh_na_posture_finding{rule="webhooks"} 0');
  const log = na.logLines.filter((text) => text.includes('mesh.webhook')).join('');
  const lines = log
    .split('\n')
    .map((text) =>
      text.replace(/^\S+ /, '').replace(/after [1-9]\d* failures/, 'after N failures'),
    );
  assert.deepEqual(lines, [
    `INFO mesh.webhook Posting events after 0 to ${hook.host}`,
    `WARNING mesh.webhook Events cannot be posted to ${hook.host}: it answered 503; they are kept and retried`,
    `INFO mesh.webhook ${hook.host} accepts events again after N failures`,
    '',
  ]);
  const shown = [...na.logLines, (await get(na, '/metrics')).text].join('');
  assert.doesNotMatch(shown, /not-for-logs|\/in\?/);
});

test('a private address is not connected to unless that is allowed, and the reason is given', async () => {
  await using house = await openHouse();
  await using hook = await house.receiver();
  const url = hook.url.replace('http://127.0.0.1', 'https://localhost');
  await using na = await house.start({ MESH_WEBHOOKS: url, MESH_WEBHOOK_PRIVATE: '0' });
  await invites(na, 1);
  await untilMetric(
    na,
    `mesh_na_webhook_failures_total{host="${hook.host.replace('127.0.0.1', 'localhost')}"} 1`,
  );
  assert.match(
    na.logLines.join(''),
    /cannot be posted to localhost:\d+: its name resolves to a private/,
  );
  assert.equal(hook.requests, 0);
});

interface House extends AsyncDisposable {
  start(environment?: Environment): Promise<TestAuthority>;
  receiver(): Promise<WebhookReceiver>;
}

/** One network whose authority is started more than once. */
async function openHouse(): Promise<House> {
  const folder = networkFolder('alpha');
  const clock = testClock();
  const { publicKey } = loadConfig({ dataDir: folder.path }, {}, clock.now());
  return {
    start: ({ MESH_THREADS: threads = '1', ...environment } = {}) =>
      startTestAuthority({
        dataDir: folder.path,
        clock,
        flags: { threads },
        environment: { MESH_WEBHOOK_PRIVATE: '1', ...environment },
      }),
    receiver: () => startReceiver({ authorityKey: publicKey, now: clock.now }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

// What a webhook endpoint can do to the service that posts to it [events-5]: not much.

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

test('an answer that comes a byte at a time takes little more memory than its bytes', async () => {
  const chunk = '1\r\nx\r\n';
  await using endpoint = await listen(
    floods('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', chunk),
  );
  const lookup = createLookup(webhookReach(true));
  const client = createStrangerClient({ lookup, limitMs: LIMIT_MS });
  const before = process.memoryUsage().rss;
  let most = before;
  const watching = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss);
  }, 5);
  const asked = { url: new URL(endpoint.url), headers: {}, mostBytes: 1024 * 1024, abort: NEVER };
  const { problem } = await client.exchange(asked);
  clearInterval(watching);
  assert.equal(problem, 'its answer has more than 1 MiB');
  const grown = (most - before) / 2 ** 20;
  assert.ok(grown < 100, `${grown} MiB`);
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

test('a name whose servers do not answer in time holds up only its like from then on', async () => {
  let now = 0;
  const unanswered: (() => void)[] = [];
  const found = [{ address: '127.0.0.1', family: 4 }];
  const lookup = createLookup(webhookReach(true), {
    elapsed: () => now,
    resolve: (host) =>
      new Promise((resolve) => {
        if (host === 'quick.example') resolve(found);
        else unanswered.push(() => resolve(found));
      }),
  });
  const ask = (host: string) =>
    new Promise((resolve) => lookup(host, { all: true }, (_cause, got) => resolve(got)));
  for (const host of ['dead.example', 'gone.example']) {
    const asked = ask(host);
    await nextTurn();
    now += MINUTE;
    unanswered.pop()?.();
    await asked;
  }
  const slow = [ask('dead.example'), ask('gone.example'), ask('gone.example')];
  assert.deepEqual(await ask('quick.example'), found);
  for (let left = 2; left > 0; left -= 1) {
    assert.equal(unanswered.length, 1, 'one after the other');
    unanswered.pop()?.();
    await nextTurn();
  }
  assert.deepEqual(await Promise.all(slow), [found, found, found]);
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

// How a request to a webhook is signed [events-6], and what a receiver accepts and refuses [events-7].

interface Case {
  readonly about: string;
  readonly now: string;
  readonly after: EventPlace | null;
  readonly header: string;
  readonly body: string;
}

interface Vectors {
  readonly keys: { readonly authority: { seed_base64: string; public_base64: string } };
  readonly request: Readonly<
    Record<'body' | 'body_sha256' | 'timestamp' | 'signed_text' | 'header', string>
  >;
  readonly accepted: readonly (Case & { readonly new: readonly number[] })[];
  readonly refused: readonly (Case & { readonly reason: string })[];
}

const { keys, request, accepted, refused } = readVectors<Vectors>('webhooks.json');
const authorityKey = keys.authority.public_base64;

test('the authority signs as the vectors are signed', () => {
  const signer = signerFromSeed(Buffer.from(keys.authority.seed_base64, 'base64'));
  const { body, timestamp } = request;
  assert.equal(sha256Hex(body), request.body_sha256);
  const proof = { key: signer.publicKey, timestamp };
  assert.equal(webhookProofText(request.body_sha256, proof), request.signed_text);
  assert.equal(webhookProof(request.body_sha256, timestamp, signer), request.header);
});

suite('a receiver accepts the vectors', () => {
  for (const vector of accepted) {
    test(vector.about, () => {
      for (const verdict of verdictsOn(vector)) {
        assert.ok(verdict.valid);
        assert.deepEqual(
          verdict.events.map(({ index }) => index),
          vector.new,
        );
      }
    });
  }
});

suite('a receiver refuses the vectors', () => {
  for (const vector of refused) {
    test(vector.about, () => {
      for (const verdict of verdictsOn(vector)) {
        assert.deepEqual(verdict, { valid: false, reason: vector.reason });
      }
    });
  }
});

test('a header that is absent, or was sent twice, is not a proof', () => {
  for (const proof of [undefined, null, [request.header, request.header], 7]) {
    const verdict = readWebhook({ proof, body: request.body }, { authorityKey, after: null });
    assert.deepEqual(verdict, { valid: false, reason: 'missing_proof' });
  }
});

test('a receiver that follows the authority accepts the signature of any key that signs now', () => {
  const [current, previous] = ['a current key', authorityKey];
  const reasonUnder = (...keys: string[]) => {
    const followed = { signingNow: () => keys, signingAt: () => [authorityKey] };
    const verdict = readWebhook(
      { proof: request.header, body: request.body },
      { authorityKey: followed, after: null, now: () => Date.parse(request.timestamp) },
    );
    return verdict.valid ? 'valid' : verdict.reason;
  };
  assert.equal(reasonUnder(current, previous), 'valid');
  assert.equal(reasonUnder(current), 'wrong_key');
});

/** The verdicts of portable code on a text, and of the server's code on bytes; they must agree. */
function verdictsOn({ header: proof, body, after, now }: Case) {
  const expected = { authorityKey, after, now: () => Date.parse(now) };
  return [
    readWebhook({ proof, body }, expected),
    readWebhook(
      { proof, body: Buffer.from(body) },
      { ...expected, verify: verifySignature, sha256: SHA256 },
    ),
  ];
}

// Webhooks whose endpoints use TLS, and which certificates the service trusts [events-5].

const scratch = mkdtempSync(join(tmpdir(), 'mesh-webhook-tls-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const issuer = makeIssuer(scratch, 'house');
const stranger = makeIssuer(scratch, 'stranger');
const HERE = { subject: 'IP:127.0.0.1' };

test('an endpoint that a given issuer vouches for is posted to, and no other is sent anything', async () => {
  await using folder = networkFolder('alpha');
  const receive = ({ certFile, keyFile }: MadePair) =>
    startReceiver({
      authorityKey: loadConfig({ dataDir: folder.path }, {}, REAL_TIME.now()).publicKey,
      now: REAL_TIME.now,
      tls: { cert: readFileSync(certFile), key: readFileSync(keyFile) },
    });
  await using good = await receive(issueTlsPair(scratch, 'good', issuer, HERE));
  await using unknown = await receive(issueTlsPair(scratch, 'unknown', stranger, HERE));
  await using expired = await receive(
    issueTlsPair(scratch, 'expired', issuer, { ...HERE, isExpired: true }),
  );
  await using other = await receive(
    issueTlsPair(scratch, 'other', issuer, { subject: 'DNS:hooks.example' }),
  );
  const refused = [
    [unknown, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    [expired, 'CERT_HAS_EXPIRED'],
    [other, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ] as const;
  const urls = [good, unknown, expired, other].map(({ url }) => url);
  await using server = await startChildServer(folder.path, {
    environment: {
      ...NO_LIMITS,
      NODE_EXTRA_CA_CERTS: issuer.certFile,
      MESH_WEBHOOKS: urls.join(' '),
      MESH_WEBHOOK_PRIVATE: '1',
    },
  });
  for (let made = 0; made < 3; made += 1) await invite(server.na);
  await good.until(3);
  assert.deepEqual(good.refused, []);
  const log = await logOf(
    server,
    refused.map(([{ host }]) => host),
  );
  for (const [{ host }, code] of refused) {
    const expected = `cannot be posted to ${host}: the connection failed (${code})`;
    assert.ok(log.includes(expected), `${expected}: ${log}`);
  }
  assert.deepEqual([unknown.requests, expired.requests, other.requests], [0, 0, 0]);
  assert.doesNotMatch(log, /not-for-logs/);
});

test('without such an issuer, those of Node.js are used, and nothing is sent', async () => {
  await using folder = networkFolder('alpha');
  const { certFile, keyFile } = issueTlsPair(scratch, 'private', issuer, HERE);
  const clock = testClock();
  await using hook = await startReceiver({
    authorityKey: loadConfig({ dataDir: folder.path }, {}, clock.now()).publicKey,
    now: clock.now,
    tls: { cert: readFileSync(certFile), key: readFileSync(keyFile) },
  });
  const environment = { MESH_WEBHOOKS: hook.url, MESH_WEBHOOK_PRIVATE: '1' };
  await using na = await startTestAuthority({ dataDir: folder.path, clock, environment });
  await invite(na);
  const failure = /the connection failed \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)/;
  await until(async () => failure.test(na.logLines.join('')));
  assert.equal(hook.requests, 0);
});

/** The service's log after it has failed at each of the hosts. */
async function logOf(server: ChildServer, hosts: readonly string[]): Promise<string> {
  const failures = hosts.map(
    (host) => new RegExp(`^mesh_na_webhook_failures_total\\{host="${host}"\\} [1-9]`, 'm'),
  );
  await until(async () => {
    const { text } = await get(server.na, '/metrics');
    return failures.every((failure) => failure.test(text));
  });
  const { stdout, stderr } = await server.end('SIGTERM');
  return stdout + stderr;
}
