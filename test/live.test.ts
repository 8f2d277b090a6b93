/** Live pages: viewers see changes without reloading, and what waits for slow ones is bounded. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { createBacklog, STALLED_MS } from '../src/edge/http/viewers.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { sharedBrowser, type Visit } from './support/browser.ts';
import { REAL_TIME } from './support/clock.ts';
import { rawConnection, UPGRADE } from './support/raw-http.ts';
import { joinedNode, newKey, operate } from './support/requests.ts';
import { issued, recognize, revokeTreaty } from './support/trust.ts';

/** Pages are refreshed as fast as time passes. */
const IN_REAL_TIME = { clock: REAL_TIME };

const open = sharedBrowser();

function isNow(page: Page, state: 'live' | 'stale'): Promise<void> {
  return page.locator(`[data-live-status="${state}"]`).waitFor({ state: 'attached' });
}

test('the dashboard shows a joined node, a revoked certificate and a treaty with a hostile name without a reload', async () => {
  await using na = await startTestAuthority(IN_REAL_TIME);
  await using visit = await open(`${na.url}/dashboard`);
  const { page } = visit;
  await isNow(page, 'live');
  await page.evaluate("document.documentElement.setAttribute('data-not-reloaded', '')");
  const nodes = page.locator('[data-stat="nodes.active"] strong');
  assert.equal((await nodes.textContent())?.trim(), '0');

  const node = await joinedNode(na);
  await page.locator('[data-stat="nodes.active"] strong', { hasText: /^\s*1\s*$/ }).waitFor();
  await operate(na, '/admin/revoke', { cert_id: node.certId });
  await page.getByText('Certificate revoked').first().waitFor();
  await recognized(na, '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>');
  await page.getByText('<img src=x').first().waitFor();
  assert.equal(await page.evaluate("'hacked' in window"), false);
  assert.equal(await page.locator('html[data-not-reloaded]').count(), 1);
  assert.deepEqual(visit.problems, []);
});

test('a revocation is on the dashboard within a second of the message about it', async () => {
  await using na = await startTestAuthority(IN_REAL_TIME);
  const node = await joinedNode(na);
  await using visit = await open(`${na.url}/`, { isApart: true });
  const { page } = visit;
  let messages = 0;
  page.on('websocket', (socket) => {
    socket.on('framereceived', ({ payload }) => {
      if (String(payload).includes('version')) messages += 1;
    });
  });
  await page.clock.install();
  await page.goto(`${na.url}/dashboard`);
  await isNow(page, 'live');
  await page.clock.pauseAt(Date.now() + 5000);
  let before = messages;
  await operate(na, '/admin/revoke', { cert_id: node.certId });
  const revoked = page.getByText('Certificate revoked');
  // Another version may have been announced just before.
  while ((await revoked.count()) === 0) {
    if (messages > before) await page.clock.runFor(1000);
    before = messages;
  }
  assert.deepEqual(visit.problems, []);
});

test('a page says when it is no longer live, and since when, and reconnects by itself', async () => {
  const na = await startTestAuthority(IN_REAL_TIME);
  await using visit = await open(`${na.url}/dashboard`);
  const { page } = visit;
  await isNow(page, 'live');
  const heading = page.locator('#posture-word');
  assert.equal(await heading.innerText(), 'All is well');
  await na.stop();
  await isNow(page, 'stale');
  assert.match(
    await heading.innerText(),
    /^Last updated \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: All is well$/,
  );
  assert.match(await page.innerText('[data-live-status]'), /the state as of .* UTC/);
  const filter = "getComputedStyle(document.querySelector('.posture')).filter";
  assert.equal(await page.evaluate(filter), 'grayscale(1)');
  assert.deepEqual(await visit.violations(), []);
  const flags = { port: new URL(na.url).port };
  await using again = await startTestAuthority({ ...IN_REAL_TIME, dataDir: na.dataDir, flags });
  await isNow(page, 'live');
  await joinedNode(again);
  await page.locator('[data-stat="nodes.active"] strong', { hasText: /^\s*1\s*$/ }).waitFor();
});

test('nothing on a page moves when it becomes live', async () => {
  await using na = await startTestAuthority(IN_REAL_TIME);
  await recognized(na, 'beta');
  await using visit = await open(`${na.url}/`, { isApart: true });
  const { page } = visit;
  // The test decides when the connection opens.
  await page.addInitScript(`window.WebSocket = class extends EventTarget {
    constructor() { super(); window.socket = this; }
    close() {}
  }`);
  for (const path of ['/dashboard', '/connectome']) {
    await page.goto(na.url + path);
    const places = () =>
      page.evaluate<string[]>(`[...document.querySelectorAll('main *:not([data-live-status])')].map(
        (element) => JSON.stringify(element.getBoundingClientRect()))`);
    const before = await places();
    await page.evaluate("window.socket.dispatchEvent(new Event('open'))");
    assert.equal(await page.innerText('[data-live-status="live"]'), 'Live');
    assert.deepEqual(await places(), before);
  }
});

async function recognized(na: TestAuthority, name: string): Promise<string> {
  const terms = { subject_sovereign_id: name, subject_public_keys: [newKey().publicKey] };
  const { treaty_id } = await issued(recognize(na, { ...terms, validity_hours: 400 }));
  return String(treaty_id);
}

function shown(visit: Visit, name: string) {
  return visit.page.locator('#treaties a', { hasText: name }).waitFor();
}

test('focus, a selected id and the scroll position survive an update', async () => {
  await using na = await startTestAuthority(IN_REAL_TIME);
  const ids = [];
  for (const name of ['beta', 'gamma', 'delta']) ids.push(await recognized(na, name));
  await using visit = await open(`${na.url}/connectome`, { height: 500 });
  const { page } = visit;
  await isNow(page, 'live');
  await page.locator('#treaties a', { hasText: 'gamma' }).focus();
  await page.evaluate(`getSelection().selectAllChildren(
    [...document.querySelectorAll('#treaties td.id')].find((cell) => cell.querySelector('a').textContent === '${ids[2]}'))`);
  const seen = () =>
    page.evaluate<[string, string, number]>(
      `[document.activeElement.textContent, getSelection().toString().trim(),
        scrollY]`,
    );
  const before = await seen();
  assert.equal(before[0], 'gamma');
  assert.equal(before[1], ids[2]);
  await recognized(na, 'epsilon');
  await shown(visit, 'epsilon');
  await page.getByRole('button', { name: `Copy ${ids[0]}` }).focus();
  await recognized(na, 'alef');
  await shown(visit, 'alef');
  const label = await page.evaluate("document.activeElement.getAttribute('aria-label')");
  assert.equal(label, `Copy ${ids[0]}`, 'also on a button that a script has added');
  await page.locator('#treaties a', { hasText: 'gamma' }).focus();
  await revokeTreaty(na, ids[1] ?? '', { reason: 'ended' });
  await page.locator('#treaties .badge', { hasText: 'revoked' }).waitFor();
  assert.deepEqual(await seen(), before);
  assert.deepEqual(visit.problems, []);
});

interface News {
  readonly topic: string;
  readonly version: string;
  readonly spread_ms: number;
}

/** Opens a page, and records what its socket got and what it fetched; `passes` chooses the messages that it gets. */
async function watched(na: TestAuthority, path: string, passes: (index: number) => boolean) {
  const visit = await open(`${na.url}/`, { isApart: true });
  const { page } = visit;
  const news: News[] = [];
  const fetched: [path: string, status: number][] = [];
  await page.routeWebSocket(/live/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      const said = JSON.parse(String(message));
      if ('alive' in said || passes(news.push(said) - 1)) socket.send(message);
    });
  });
  page.on('response', (response) => {
    if (response.request().resourceType() !== 'fetch') return;
    fetched.push([new URL(response.url()).pathname, response.status()]);
  });
  await page.goto(na.url + path);
  await isNow(page, 'live');
  return { visit, page, news, fetched };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((next) => setImmediate(next));
}

test('a message names only the version, which the page has, too', async () => {
  await using na = await startTestAuthority(IN_REAL_TIME);
  const { visit, page, news } = await watched(na, '/connectome', () => true);
  await using _ = visit;
  await until(() => news.length === 1);
  const version = await page.getAttribute('[data-live]', 'data-version');
  assert.deepEqual(news, [{ topic: 'connectome', version, spread_ms: 1 }]);
  const other = await watched(na, '/connectome', () => true);
  await using __ = other.visit;
  await recognized(na, 'beta');
  await shown(visit, 'beta');
  await page.locator('.graph-picture .node', { hasText: 'beta' }).waitFor();
  await until(() => other.news.length === 2);
  const later = await page.getAttribute('[data-live]', 'data-version');
  assert.notEqual(later, version);
  assert.deepEqual(other.news.at(-1), { topic: 'connectome', version: later, spread_ms: 2 });
});

test('a viewer fetches the page once for each version, and what it missed comes with the next', async () => {
  await using na = await startTestAuthority(IN_REAL_TIME);
  const { visit, news, fetched } = await watched(na, '/connectome', (index) => index !== 1);
  await using _ = visit;
  await recognized(na, 'missed');
  await until(() => news.length === 2);
  assert.deepEqual(fetched, []);
  for (const name of ['noticed', 'later']) {
    await recognized(na, name);
    await shown(visit, name);
  }
  await shown(visit, 'missed');
  assert.deepEqual(fetched, [
    ['/connectome', 200],
    ['/connectome', 200],
  ]);
});

test('a version that the page shows already is not fetched', async () => {
  await using na = await startTestAuthority(IN_REAL_TIME);
  await recognized(na, 'beta');
  const { visit, news, fetched } = await watched(na, '/connectome', () => true);
  await using _ = visit;
  await until(() => news.length === 1);
  await visit.page.reload();
  await until(() => news.length === 2);
  await recognized(na, 'gamma');
  await shown(visit, 'gamma');
  assert.deepEqual(fetched, [['/connectome', 200]]);
});

test('a WebSocket is for one known topic, from our own origin', async () => {
  await using na = await startTestAuthority(IN_REAL_TIME);
  for (const [query, origin, expected] of [
    ['?topic=dashboard', null, 101],
    ['?topic=connectome', null, 101],
    ['?topic=dashboard', na.url, 101],
    ['', null, 400],
    ['?topic=secrets', null, 400],
    ['?topic=dashboard&topic=connectome', null, 400],
    ['?topic=dashboard', 'http://evil.example', 403],
  ] as const) {
    assert.equal(await upgradeStatus(na, query, origin), expected, `${query} ${origin}`);
  }
});

test('many viewers hear of a version in several turns of the event loop', async () => {
  const flags = { threads: '1' };
  await using na = await startTestAuthority({ ...IN_REAL_TIME, flags });
  const viewers = await Promise.all(Array.from({ length: 600 }, () => rawConnection(na.url)));
  for (const { write } of viewers) write(UPGRADE);
  for (const { until } of viewers) await until('"version"');
  let turn = 0;
  let left = viewers.length;
  const turns = new Set<number>();
  for (const { socket } of viewers) {
    socket.on('data', (bytes: Buffer) => {
      if (!bytes.includes('"version"')) return;
      turns.add(turn);
      left -= 1;
    });
  }
  await recognized(na, 'beta');
  while (left > 0) {
    await new Promise((next) => setImmediate(next));
    turn += 1;
  }
  for (const viewer of viewers) viewer[Symbol.dispose]();
  assert.ok(turns.size >= 4, `${turns.size} turns`);
});

/** Opens a WebSocket manually and returns the status of the answer. */
function upgradeStatus(na: TestAuthority, query: string, origin: string | null): Promise<number> {
  const { host, hostname, port } = new URL(na.url);
  const key = createHash('md5').update(randomBytes(8)).digest('base64');
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', reject);
    socket.once('data', (data) => {
      socket.destroy();
      resolve(Number(data.toString('latin1').slice(9, 12)));
    });
    socket.write(
      [
        `GET /live${query} HTTP/1.1`,
        `Host: ${host}`,
        'Upgrade: websocket',
        'Connection: Upgrade',
        `Sec-WebSocket-Key: ${key}`,
        'Sec-WebSocket-Version: 13',
        ...(origin === null ? [] : [`Origin: ${origin}`]),
        '',
        '',
      ].join('\r\n'),
    );
  });
}

// What waits for slow viewers of live pages is bounded, for all of them together.

const MOST = 1000;

function backlogAt() {
  let now = 0;
  const closed: string[] = [];
  const backlog = createBacklog(MOST, () => now);
  return {
    backlog,
    closed,
    wait(ms: number) {
      now += ms;
    },
    socket(name: string) {
      let buffered = 0;
      const socket = {
        getBufferedAmount: () => buffered,
        close() {
          closed.push(name);
          backlog.leave(socket);
        },
      };
      return (bytes: number) => {
        buffered = bytes;
        backlog.note(socket);
      };
    },
  };
}

test('those that have been behind the longest are closed first, until the rest fits', () => {
  const { closed, socket } = backlogAt();
  const [first, second, third, fourth] = ['first', 'second', 'third', 'fourth'].map(socket);
  for (const set of [first, second, third]) set?.(300);
  first?.(0);
  first?.(300);
  assert.deepEqual(closed, []);
  // The first had caught up meanwhile, so it is behind for a shorter time than the others.
  fourth?.(500);
  assert.deepEqual(closed, ['second', 'third']);
  fourth?.(1001);
  assert.deepEqual(closed, ['second', 'third', 'first', 'fourth']);
});

test('a socket that never catches up is closed, even if it accepts a little from time to time', () => {
  const { backlog, closed, socket, wait } = backlogAt();
  const [slow, current] = ['slow', 'current'].map(socket);
  for (let waited = 0; waited < STALLED_MS; waited += 1000) {
    slow?.(500 - waited / 1000);
    current?.(100);
    wait(1000);
    current?.(0);
    backlog.endStalled();
  }
  assert.deepEqual(closed, ['slow']);
});

test('sockets that leave or catch up free their room', () => {
  const { backlog, closed, socket } = backlogAt();
  for (let i = 0; i < 100; i += 1) {
    const set = socket(String(i));
    set(900);
    set(0);
  }
  for (let i = 0; i < 100; i += 1) {
    const gone = { getBufferedAmount: () => 900, close: () => closed.push('gone') };
    backlog.note(gone);
    backlog.leave(gone);
  }
  assert.deepEqual(closed, []);
});
