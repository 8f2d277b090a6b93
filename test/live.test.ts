/** Live pages: viewers see changes without reloading. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { createLivePages } from '../src/edge/http/live-pages.ts';
import { connectomeMain } from '../src/pages/connectome.ts';
import { type LiveTopic, liveContent } from '../src/pages/live-content.ts';
import {
  documentText,
  type PublishedDocument,
  publishedDocument,
} from '../src/protocol/contract/documents.ts';
import { createDocumentCache } from '../src/protocol/contract/publications.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { startBrowser, type TestBrowser, type Visit } from './support/browser.ts';
import { connectomeOf, graphOf } from './support/connectome.ts';
import { joinedNode, newKey, operate } from './support/requests.ts';
import { issued, recognize, revokeTreaty } from './support/trust.ts';

/** Time limit for events that may never come; generous for a busy machine. */
const SOON = { timeout: 30_000 };

let browser: TestBrowser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser.close());

function liveStatus(page: Awaited<ReturnType<TestBrowser['visit']>>['page']) {
  return page.locator('[data-live-status="live"]').waitFor({ state: 'attached', ...SOON });
}

test('the dashboard shows a joined node, a revoked certificate and a treaty without a reload', async () => {
  await using na = await startTestAuthority();
  await using visit = await browser.visit(`${na.url}/dashboard`);
  const { page } = visit;
  await liveStatus(page);
  await page.evaluate("document.documentElement.setAttribute('data-not-reloaded', '')");
  const nodes = page.locator('[data-key="nodes.active"] strong');
  assert.equal((await nodes.textContent())?.trim(), '0');

  const node = await joinedNode(na);
  await page.locator('[data-key="nodes.active"] strong', { hasText: /^\s*1\s*$/ }).waitFor(SOON);
  await operate(na, '/admin/revoke', { cert_id: node.certId });
  await page.getByText('Certificate revoked').first().waitFor(SOON);
  await operate(na, '/admin/recognition-treaties', {
    subject_sovereign_id: 'a-new-neighbor',
    subject_public_keys: [newKey().publicKey],
  });
  await page.getByText('a-new-neighbor').first().waitFor(SOON);
  assert.equal(await page.locator('html[data-not-reloaded]').count(), 1);
  assert.deepEqual(visit.problems, []);
});

test('the Connectome draws a new treaty without a reload', async () => {
  await using na = await startTestAuthority();
  await using visit = await browser.visit(`${na.url}/connectome`);
  await liveStatus(visit.page);
  await operate(na, '/admin/recognition-treaties', {
    subject_sovereign_id: 'a-new-neighbor',
    subject_public_keys: [newKey().publicKey],
  });
  await visit.page
    .getByText('a-new-neighbor')
    .first()
    .waitFor({ state: 'attached', ...SOON });
  assert.deepEqual(visit.problems, []);
});

test('a hostile name that arrives live is text', async () => {
  await using na = await startTestAuthority();
  await using visit = await browser.visit(`${na.url}/dashboard`);
  await liveStatus(visit.page);
  const name = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
  await operate(na, '/admin/recognition-treaties', {
    subject_sovereign_id: name,
    subject_public_keys: [newKey().publicKey],
  });
  await visit.page.getByText('<img src=x').first().waitFor(SOON);
  assert.equal(await visit.page.evaluate("'hacked' in window"), false);
  assert.deepEqual(visit.problems, []);
});

test('a page shows when it is no longer live, and reconnects by itself', async () => {
  const na = await startTestAuthority();
  const { port } = new URL(na.url);
  await using visit = await browser.visit(`${na.url}/dashboard`);
  await liveStatus(visit.page);
  await na.stop();
  await visit.page.locator('[data-live-status="stale"]').waitFor({ state: 'attached', ...SOON });
  await using again = await startTestAuthority({ dataDir: na.dataDir, flags: { port } });
  await visit.page.locator('[data-live-status="live"]').waitFor({ state: 'attached', ...SOON });
  await joinedNode(again);
  await visit.page
    .locator('[data-key="nodes.active"] strong', { hasText: /^\s*1\s*$/ })
    .waitFor(SOON);
});

test('the heading, a bar and the color say when the connection was lost, in UTC', async () => {
  const na = await startTestAuthority();
  await using visit = await browser.visit(`${na.url}/dashboard`);
  const { page } = visit;
  await liveStatus(page);
  const heading = page.locator('#posture-word');
  assert.equal(await heading.innerText(), 'All is well');
  await na.stop();
  await page.locator('[data-live-status="stale"]').waitFor(SOON);
  assert.match(
    await heading.innerText(),
    /^Last updated \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: All is well$/,
  );
  assert.match(await page.innerText('[data-live-status]'), /the state as of .* UTC/);
  assert.equal(
    await page.evaluate("getComputedStyle(document.querySelector('.posture')).filter"),
    'grayscale(1)',
  );
  assert.deepEqual(await visit.violations(), []);
});

for (const path of ['/dashboard', '/connectome']) {
  test(`nothing on ${path} moves when it becomes live`, async () => {
    await using na = await startTestAuthority();
    await recognized(na, 'beta');
    await using visit = await browser.visit(`${na.url}/`, { isApart: true });
    const { page } = visit;
    // The test decides when the connection opens.
    await page.addInitScript(`window.WebSocket = class extends EventTarget {
      constructor() { super(); window.socket = this; }
      close() {}
    }`);
    await page.goto(na.url + path);
    const places = () =>
      page.evaluate<string[]>(`[...document.querySelectorAll('main *:not([data-live-status])')].map(
        (element) => JSON.stringify(element.getBoundingClientRect()))`);
    const before = await places();
    await page.evaluate("window.socket.dispatchEvent(new Event('open'))");
    assert.equal(await page.innerText('[data-live-status="live"]'), 'Live');
    assert.deepEqual(await places(), before);
  });
}

async function recognized(na: TestAuthority, name: string): Promise<string> {
  const terms = { subject_sovereign_id: name, subject_public_keys: [newKey().publicKey] };
  const { treaty_id } = await issued(recognize(na, { ...terms, validity_hours: 400 }));
  return String(treaty_id);
}

function shown(visit: Visit, name: string) {
  return visit.page.locator('#treaties a', { hasText: name }).waitFor(SOON);
}

test('focus, a selected id and the scroll position survive an update', async () => {
  await using na = await startTestAuthority();
  const ids = [];
  for (const name of ['beta', 'gamma', 'delta']) ids.push(await recognized(na, name));
  await using visit = await browser.visit(`${na.url}/connectome`, { height: 500 });
  const { page } = visit;
  await liveStatus(page);
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
  await revokeTreaty(na, ids[1] ?? '', { reason: 'ended' });
  await page.locator('#treaties .badge', { hasText: 'revoked' }).waitFor(SOON);
  assert.deepEqual(await seen(), before);
  assert.deepEqual(visit.problems, []);
});

test('updates add no listener', async () => {
  await using na = await startTestAuthority();
  await recognized(na, 'beta');
  await using visit = await browser.visit(`${na.url}/connectome`);
  await liveStatus(visit.page);
  const before = await listeners(visit);
  for (const name of ['gamma', 'delta']) {
    await recognized(na, name);
    await shown(visit, name);
  }
  assert.deepEqual(await listeners(visit), before);
  await visit.page.locator('.node', { hasText: 'delta' }).focus();
  assert.equal(await visit.page.locator('.graph-picture.focused .node.hot').count(), 2);
});

/** The number of listeners on the document and on the first sovereign of the drawing. */
async function listeners({ page }: Visit): Promise<number[]> {
  const session = await page.context().newCDPSession(page);
  const counts = [];
  for (const expression of ['document', "document.querySelector('.node')"]) {
    const { result } = await session.send('Runtime.evaluate', { expression });
    const found = await session.send('DOMDebugger.getEventListeners', {
      objectId: result.objectId ?? '',
    });
    counts.push(found.listeners.length);
  }
  return counts;
}

test('a viewer who missed a change fetches the page once, and continues from there', async () => {
  await using na = await startTestAuthority();
  await using visit = await browser.visit(`${na.url}/`, { isApart: true });
  const { page } = visit;
  let patches = 0;
  await page.routeWebSocket(/live/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((message) => {
      if (String(message).includes('"patch"')) patches += 1;
      if (patches !== 1) socket.send(message);
    });
  });
  const fetched: string[] = [];
  page.on('request', (request) => {
    if (request.resourceType() === 'fetch') fetched.push(new URL(request.url()).pathname);
  });
  await page.goto(`${na.url}/connectome`);
  await liveStatus(page);
  await recognized(na, 'missed');
  // The first patch must have been sent; the viewer does not get it.
  await expectPatches(() => patches, 1);
  await recognized(na, 'noticed');
  for (const name of ['missed', 'noticed']) await shown(visit, name);
  assert.deepEqual(fetched, ['/connectome']);
  await recognized(na, 'patched');
  await shown(visit, 'patched');
  assert.deepEqual(fetched, ['/connectome']);
});

async function expectPatches(count: () => number, least: number): Promise<void> {
  const end = Date.now() + SOON.timeout;
  while (count() < least && Date.now() < end) await new Promise((next) => setImmediate(next));
  assert.ok(count() >= least);
}

test('one changed treaty of 2,000 is a message of a few hundred bytes', (t) => {
  const before = connectomeOf(400, 2000);
  const [first, ...others] = before.recognition_edges;
  assert.ok(first);
  const ended = { ...first, status: 'revoked', lifecycle_state: 'revoked' } as const;
  const after = {
    ...before,
    summary: { ...before.summary, active_edge_count: 1999, revoked_edge_count: 1 },
    recognition_edges: [ended, ...others],
  };
  const cache = createDocumentCache(new Int32Array(new SharedArrayBuffer(1024)));
  const render = (_topic: LiveTopic, document: PublishedDocument) =>
    liveContent(connectomeMain(graphOf(JSON.parse(documentText(document)))));
  const pages = createLivePages(cache, render, () => true);
  const bytes: number[] = [];
  pages.onChange((_topic, message) => bytes.push(Buffer.byteLength(message)));
  for (const [index, document] of [before, after].entries()) {
    const published = publishedDocument(JSON.stringify(document));
    cache.take({ name: 'connectome', version: index + 1, document: published });
  }
  const patch = bytes.at(-1) ?? 0;
  const whole = Buffer.byteLength(connectomeMain(graphOf(after)).text);
  t.diagnostic(`${patch} bytes as a patch, ${whole} bytes as the whole content`);
  assert.ok(patch > 0 && patch < 8 * 1024, `${patch} bytes`);
  assert.ok(whole > 20 * patch, `${whole} bytes`);
});

for (const [name, query, headers, expected] of [
  ['a topic', '?topic=dashboard', {}, 101],
  ['the other topic', '?topic=connectome', {}, 101],
  ['a topic and our own origin', '?topic=dashboard', { Origin: 'own' }, 101],
  ['no topic', '', {}, 400],
  ['a topic nobody knows', '?topic=secrets', {}, 400],
  ['two topics', '?topic=dashboard&topic=connectome', {}, 400],
  ['the origin of another site', '?topic=dashboard', { Origin: 'http://evil.example' }, 403],
] as const) {
  test(`a WebSocket with ${name} is answered with ${expected}`, async () => {
    await using na = await startTestAuthority();
    assert.equal(await upgradeStatus(na, query, headers), expected);
  });
}

/** Opens a WebSocket manually and returns the status of the answer. */
function upgradeStatus(
  na: TestAuthority,
  query: string,
  headers: { readonly Origin?: string },
): Promise<number> {
  const { host, hostname, port } = new URL(na.url);
  const origin = headers.Origin === 'own' ? `http://${host}` : headers.Origin;
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
        ...(origin === undefined ? [] : [`Origin: ${origin}`]),
        '',
        '',
      ].join('\r\n'),
    );
  });
}
