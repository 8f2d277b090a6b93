/** Requests that a standby passes on: real processes on one PostgreSQL, asked through any of them. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { WebSocket } from 'undici';
import type { ChildServer } from './support/child-server.ts';
import { placeOf, type TestInstances, testInstances } from './support/instances.ts';
import { startCluster } from './support/postgresql.ts';
import { rawConnection } from './support/raw-http.ts';
import {
  get,
  heartbeat,
  joinedNode,
  newKey,
  operate,
  operatorRequest,
  outcome,
  send,
  sendRaw,
} from './support/requests.ts';
import { makeTlsPair } from './support/tls-files.ts';
import { until } from './support/until.ts';

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const LINKED = {
  MESH_LINK: '127.0.0.1:0',
  // No test waits for it to expire, and on a busy machine the active instance may stall for longer than usual ones last.
  MESH_LEASE_MS: '20000',
  MESH_PROXY_HOPS: '1',
  MESH_RATE_LIMIT_SEARCH: '4/60',
};

let instances: TestInstances;
let active: ChildServer;
let standbys: readonly ChildServer[];
before(async () => {
  instances = await testInstances(cluster);
  active = await instances.start(LINKED);
  standbys = await Promise.all([instances.start(LINKED), instances.start(LINKED)]);
  await until(async () => (await Promise.all(standbys.map(placeOf))).every(({ ready }) => ready));
});
after(() => instances[Symbol.asyncDispose]());

const standby = () => standbys[0] as ChildServer;

test('an answer through a standby is that of the active instance, byte for byte', async () => {
  const node = await joinedNode(standby().na);
  await operate(active.na, '/admin/revoke', { cert_id: node.certId });
  for (const [method, path, headers] of [
    ['GET', '/crl', {}],
    ['GET', '/crl', { 'Accept-Encoding': 'gzip' }],
    ['HEAD', '/crl', {}],
    ['GET', '/crl?since=0', {}],
    ['GET', '/genesis', {}],
    ['GET', '/connectome', { 'Accept-Encoding': 'gzip', Accept: 'text/html' }],
    ['GET', '/agents', {}],
    ['GET', '/no/such%20path?', {}],
    ['POST', '/verify/agreement', {}],
    ['PUT', '/crl', {}],
  ] as const) {
    const asked = { ...headers, 'X-Request-Id': 'the-same' };
    const answers = await Promise.all(
      [active, standby()].map(({ na }) => sendRaw(na, method, path, { headers: asked })),
    );
    const [expected, got] = answers.map(({ status, headers: all, text }) => {
      const others = [...all].filter(([name]) => name !== 'date');
      return { status, others, text };
    });
    assert.deepEqual(got, expected, `${method} ${path}`);
  }
  const etag = String((await get(standby().na, '/crl')).headers.get('etag'));
  const held = await send(standby().na, 'GET', '/crl', { headers: { 'If-None-Match': etag } });
  assert.equal(held.status, 304);
});

test('a head that no HTTP library would write is answered as by the active instance, or refused', async () => {
  const utf8 = Buffer.from('é→').toString('latin1');
  for (const [method, path, header, expected] of [
    ['GET', '/genesis', utf8, [200, 200]],
    ['GET', '/genesis', 'a\x7f', [200, 200]],
    ['GET', `/${utf8}`, 'a', [404, 404]],
    ['G(T', '/genesis', 'a', [405, 400]],
  ] as const) {
    const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nUser-Agent: ${header}\r\n\r\n`;
    const statuses = await Promise.all(
      [active, standby()].map((server) => rawStatus(server, Buffer.from(head, 'latin1'))),
    );
    assert.deepEqual(statuses, expected, JSON.stringify(head));
  }
});

test('heads with more lines than the active instance takes are refused, and keep no other waiting', async () => {
  const { na } = standby();
  const lines = Array.from({ length: 96 }, (_, at) => `X-${at}: a`);
  const head = ['GET /genesis HTTP/1.1', 'Host: x', ...lines, '', ''].join('\r\n');
  const strangers = await Promise.all(Array.from({ length: 600 }, () => rawConnection(na.url)));
  for (const { write } of strangers) write(head);
  const node = await joinedNode(na);
  assert.equal(outcome(await heartbeat(na, node)), '200');
  for (const stranger of strangers) {
    const answer = await stranger.until(/\r\n\r\n.*}$/);
    assert.match(answer, /^HTTP\/1.1 400 .*"code":"bad_request"/s);
    stranger[Symbol.dispose]();
  }
});

test('a limit counts by the address of the client, through whichever instance it asks', async () => {
  const search = (server: ChildServer, from: string) =>
    send(server.na, 'GET', '/search?q=a', { headers: { 'X-Forwarded-For': from } });
  const servers = [...standbys, active, ...standbys];
  const statuses: number[] = [];
  for (const server of servers) statuses.push((await search(server, '198.51.100.7')).status);
  assert.deepEqual(statuses, [200, 200, 200, 200, 429]);
  assert.equal((await search(standby(), '198.51.100.8')).status, 200);
});

test('only instances may say for whom they ask, and no one else reaches the socket where they do', async () => {
  const claim = (address: string) => ({
    'X-Forwarded-For': '198.51.100.20',
    'X-Mesh-Forwarded-For': address,
    'X-Mesh-Base-Url': 'https://elsewhere.example',
  });
  for (const server of [active, standby()]) {
    const shown = await send(server.na, 'GET', '/sovereign.json', { headers: claim('192.0.2.1') });
    assert.equal(shown.body.endpoint, server.na.url);
  }
  const statuses: number[] = [];
  for (const [at, server] of [active, standby(), active, standby(), active].entries()) {
    const headers = claim(`192.0.2.${at}`);
    statuses.push((await send(server.na, 'GET', '/search?q=a', { headers })).status);
  }
  assert.deepEqual(statuses, [200, 200, 200, 200, 429], 'one address, whatever it claims');
  const folders = readdirSync(tmpdir()).filter((name) => /^mesh-na-.{6}$/.test(name));
  const modes = folders.map((name) => statSync(join(tmpdir(), name)).mode & 0o777);
  assert.deepEqual([...new Set(modes)], [0o700]);
});

test('a body of two MiB arrives, and a longer one is refused', async () => {
  const body = JSON.stringify({ feed: { filler: 'a'.repeat(2 ** 21 - 100) } });
  for (const [text, expected] of [
    [body, /^4(?:0[0-3]|22) /],
    [`${body}${' '.repeat(2 ** 21)}`, /^413 /],
  ] as const) {
    const path = '/admin/sovereign-revocation-feeds/import';
    const [first, second] = await Promise.all(
      [active, standby()].map(({ na }) => send(na, 'POST', path, { body: text })),
    );
    assert.ok(first !== undefined && second !== undefined);
    assert.equal(outcome(second), outcome(first));
    assert.match(outcome(first), expected);
  }
});

test('an answer that is too long to be collected first arrives whole', async () => {
  const { headers, body } = await operate(standby().na, '/admin/invite', { count: 1000 });
  assert.equal(body.tokens.length, 1000);
  assert.ok(Number(headers.get('content-length')) > 64 * 1024);
});

test('a client that leaves, and one that does not read, keep no other waiting', async () => {
  const { hostname, port } = new URL(standby().na.url);
  const clients: Socket[] = [];
  for (let n = 0; n < 300; n += 1) {
    const client = connect(Number(port), hostname).on('error', () => undefined);
    client.pause();
    client.write('GET /connectome HTTP/1.1\r\nHost: x\r\n\r\n');
    clients.push(client);
  }
  for (const client of clients.slice(150)) client.destroy();
  const node = await joinedNode(standby().na);
  assert.equal(outcome(await heartbeat(standby().na, node)), '200');
  for (const client of clients) client.destroy();
});

test('a live page gets its messages through a standby, and another site opens none', async () => {
  const url = standby().na.url.replace('http', 'ws');
  const socket = new WebSocket(`${url}/live?topic=dashboard`);
  const messages: string[] = [];
  socket.addEventListener('message', ({ data }) => messages.push(String(data)));
  await until(async () => messages.length >= 1);
  await joinedNode(active.na);
  await until(async () => messages.length >= 2);
  assert.match(messages.join(), /"topic":"dashboard"/);
  socket.close();
  assert.equal(await upgradeStatus(standby(), '?topic=dashboard', 'http://evil.example'), 403);
  assert.equal(await upgradeStatus(standby(), '?topic=secrets'), 400);
});

test('many viewers of a live page through a standby share connections between instances, and spread', async () => {
  const url = `${standby().na.url.replace('http', 'ws')}/live?topic=connectome`;
  const before = openFiles(active);
  const viewers = Array.from({ length: 300 }, () => viewerOf(url));
  await until(() => viewers.every(({ heard }) => heard.length > 0));
  const more = openFiles(active) - before;
  assert.ok(more < 50, `${more} descriptors more`);
  const first = viewers[0]?.heard[0]?.version;
  const key = newKey().publicKey;
  const terms = { subject_sovereign_id: 'shared', subject_public_keys: [key] };
  assert.equal((await operate(active.na, '/admin/recognition-treaties', terms)).status, 200);
  await until(() => {
    const versions = new Set(viewers.map(({ heard }) => heard.at(-1)?.version));
    return versions.size === 1 && !versions.has(first);
  });
  assert.ok(viewers.every(({ heard }) => Number(heard.at(-1)?.spread_ms) >= 300));
  for (const viewer of viewers) viewer.leave();
  const later = viewerOf(url);
  await until(() => later.heard.length > 0);
  later.leave();
});

/** What a viewer of a live page hears, which opens it again when its connection ends. */
function viewerOf(url: string) {
  const heard: { readonly version: string; readonly spread_ms: number }[] = [];
  let hasLeft = false;
  let socket = open();
  function open(): WebSocket {
    const opened = new WebSocket(url);
    opened.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data));
      if ('version' in message) heard.push(message);
    });
    opened.addEventListener('close', () => {
      if (!hasLeft) socket = open();
    });
    return opened;
  }
  return {
    heard,
    leave() {
      hasLeft = true;
      socket.close();
    },
  };
}

test('many readers of events through a standby see the same entry', async () => {
  const path = `/events?after=${Number.MAX_SAFE_INTEGER}`;
  const ahead = await operate(standby().na, path, undefined, { method: 'GET' });
  const end = ahead.body.error.details.log_size;
  const began = Array.from({ length: 1000 }, () => openEvents(`/events?after=${end}`));
  const seen = (await Promise.all(began)).map((read) => read('seen-by-all'));
  await operate(active.na, '/admin/invite', { name: 'seen-by-all' });
  await Promise.all(seen);
});

test('a reader that begins to read late gets every entry whole', async () => {
  const roles = Array.from({ length: 64 }, (_, index) => `role:${index}-${'x'.repeat(100)}`);
  await operate(active.na, '/admin/invite', { count: 200, roles });
  const readers = await Promise.all(Array.from({ length: 32 }, () => openEvents('/events')));
  await operate(active.na, '/admin/invite', { name: 'seen-late' });
  const texts = await Promise.all(readers.map((read) => read('seen-late')));
  for (const text of texts) {
    const indexes = [...text.matchAll(/^id: (\d+)$/gm)].map(([, index]) => Number(index));
    assert.deepEqual(
      indexes,
      indexes.map((_, at) => at + 1),
    );
  }
});

test('a standby that serves TLS passes on its own address, and answers as the active instance', async () => {
  const { certFile, keyFile } = makeTlsPair(instances.folder, 'public');
  const secured = await instances.start({
    ...LINKED,
    MESH_TLS_CERT: certFile,
    MESH_TLS_KEY: keyFile,
  });
  assert.match(secured.na.url, /^https:/);
  const ca = readFileSync(certFile);
  async function read(path: string): Promise<string> {
    const [answer] = await once(request(`${secured.na.url}${path}`, { ca }).end(), 'response');
    assert.equal(answer.statusCode, 200);
    return text(answer);
  }
  await until(async () => JSON.parse(await read('/readyz')).role === 'standby');
  assert.equal(await read('/crl'), (await get(active.na, '/crl')).text);
  assert.equal(JSON.parse(await read('/sovereign.json')).endpoint, secured.na.url);
});

function openFiles({ process }: ChildServer): number {
  return readdirSync(`/proc/${process.pid}/fd`).length;
}

/** Returns a function that reads up to an event with this text, and then leaves. */
async function openEvents(path: string): Promise<(sought: string) => Promise<string>> {
  const { na } = standby();
  const { init } = operatorRequest(na, path, {}, { method: 'GET' });
  const { status, body } = await fetch(`${na.url}${path}`, init);
  assert.equal(status, 200, status === 200 ? '' : await new Response(body).text());
  const reader = body?.getReader();
  return async (sought) => {
    const decoder = new TextDecoder();
    const pieces: string[] = [];
    while (!pieces.slice(-2).join('').includes(sought)) {
      const read = await reader?.read();
      assert.equal(read?.done, false);
      pieces.push(decoder.decode(read?.value, { stream: true }));
    }
    await reader?.cancel();
    return pieces.join('');
  };
}

/** Opens a WebSocket manually and returns the status of the answer. */
function upgradeStatus(server: ChildServer, query: string, origin?: string): Promise<number> {
  const lines = [
    `GET /live${query} HTTP/1.1`,
    `Host: ${new URL(server.na.url).host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${createHash('md5').update(randomBytes(8)).digest('base64')}`,
    'Sec-WebSocket-Version: 13',
    ...(origin === undefined ? [] : [`Origin: ${origin}`]),
  ];
  return rawStatus(server, Buffer.from(`${lines.join('\r\n')}\r\n\r\n`));
}

function rawStatus({ na }: ChildServer, head: Buffer): Promise<number> {
  const { hostname, port } = new URL(na.url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', reject);
    socket.once('data', (data) => {
      socket.destroy();
      resolve(Number(data.toString('latin1').slice(9, 12)));
    });
    socket.write(head);
  });
}
