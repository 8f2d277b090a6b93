/** Live pages: viewers see changes without reloading. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { startBrowser, type TestBrowser } from './support/browser.ts';
import { joinedNode, newKey, operate } from './support/requests.ts';

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
  const nodes = page.locator('[data-field="nodes.active"]');
  assert.equal((await nodes.textContent())?.trim(), '0');

  const node = await joinedNode(na);
  await page.locator('[data-field="nodes.active"]', { hasText: /^\s*1\s*$/ }).waitFor(SOON);
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

test('the connectome draws a new treaty without a reload', async () => {
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
  await visit.page.locator('[data-field="nodes.active"]', { hasText: /^\s*1\s*$/ }).waitFor(SOON);
});

for (const [name, query, headers, expected] of [
  ['a topic', '?topic=dashboard', {}, 101],
  ['the other topic', '?topic=connectome', {}, 101],
  ['a topic and our own origin', '?topic=dashboard', { Origin: 'own' }, 101],
  ['no topic', '', {}, 400],
  ['a topic nobody knows', '?topic=secrets', {}, 400],
  ['the origin of another site', '?topic=dashboard', { Origin: 'http://evil.example' }, 403],
] as const) {
  test(`a WebSocket with ${name} is answered ${expected}`, async () => {
    await using na = await startTestAuthority();
    assert.equal(await upgradeStatus(na, query, headers), expected);
  });
}

/** Opens a WebSocket by hand and returns the status of the answer. */
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
