/** What a browser gets for an unknown path; programs get the envelope. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { startTestAuthority } from './support/authority.ts';
import { HOSTILE_NAME, NARROW } from './support/browser.ts';
import { exchange } from './support/exchange.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { startPages } from './support/pages.ts';
import { outcome, sendRaw } from './support/requests.ts';

const OF_CHROMIUM =
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8';

const { na, browser } = await startPages();

function asked(method: string, path: string, accept?: string) {
  const headers = { 'X-Request-ID': 'same', ...(accept === undefined ? {} : { Accept: accept }) };
  return sendRaw(na, method, path, { headers });
}

for (const accept of [OF_CHROMIUM, 'text/html', 'text/*', 'text/html, application/json;q=0.9']) {
  test(`an unknown path is a page for clients that prefer one: ${accept}`, async () => {
    const { status, headers, text } = await asked('GET', '/nowhere', accept);
    assert.equal(status, 404);
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('vary'), 'Accept, Accept-Encoding');
    assert.equal(headers.get('etag'), null);
    assert.equal(headers.get('x-request-id'), 'same');
    assert.match(
      headers.get('content-security-policy') ?? '',
      /^default-src 'none'; style-src 'self'; script-src 'self'; /,
    );
    const head = await asked('HEAD', '/nowhere', accept);
    assert.equal(head.status, 404);
    assert.equal(head.text, '');
    assert.equal(head.headers.get('content-length'), String(Buffer.byteLength(text)));
  });
}

test('it is compressed for clients that accept it', async () => {
  const plain = await asked('GET', '/nowhere', 'text/html');
  const { headers, bytes } = await exchange(`${na.url}/nowhere`, {
    method: 'GET',
    headers: { Accept: 'text/html' },
  });
  assert.equal(headers.get('content-encoding'), 'gzip');
  assert.ok(Number(headers.get('content-length')) < plain.text.length / 2);
  assert.equal(bytes.toString(), plain.text);
});

test('for all others it is the envelope, byte for byte', async () => {
  const plain = await asked('GET', '/nowhere');
  assert.equal(
    plain.text,
    '{"error":{"code":"not_found","message":"The path does not exist","details":{},"request_id":"same"}}',
  );
  const accepted = [
    '*/*',
    'application/json',
    'application/json, text/html',
    'text/html;q=0.5, application/json',
    'text/html;q=0',
    'text/html;q=0.5, */*',
    'image/png',
    'nonsense',
    `text/html, ${'a/b,'.repeat(900)}c/d`,
  ];
  for (const accept of accepted) {
    const answer = await asked('GET', '/nowhere', accept);
    assert.equal(answer.text, plain.text, accept);
    const names = [...answer.headers.keys()].filter((name) => name !== 'date');
    assert.deepEqual(
      names,
      [...plain.headers.keys()].filter((name) => name !== 'date'),
    );
  }
});

test('a page is only for an unknown path, and only for reads', async () => {
  assert.equal(outcome(await asked('POST', '/nowhere', OF_CHROMIUM)), '404 not_found');
  assert.equal(outcome(await asked('PUT', '/crl', OF_CHROMIUM)), '405 method_not_allowed');
  assert.equal(outcome(await asked('GET', '/%zz', OF_CHROMIUM)), '400 bad_request');
  assert.equal(
    outcome(await asked('GET', '/attestations/none', OF_CHROMIUM)),
    '404 attestation_not_found',
  );
  assert.equal(outcome(await asked('GET', `/${'a/'.repeat(40)}`, OF_CHROMIUM)), '404 not_found');
});

for (const path of ['/deep/in/nowhere/', '//nowhere?q=1']) {
  test(`in a browser, ${path} says so and links to what exists`, async () => {
    await using visit = await browser.visit(na.url + path, { width: NARROW });
    const { page } = visit;
    assert.equal(await page.locator('h1').textContent(), 'Page not found');
    assert.deepEqual(await visit.violations(), []);
    assert.equal(await visit.overflow(), 0);
    // Chromium reports the status as a console error.
    assert.deepEqual(
      visit.problems.filter((problem) => !problem.includes('404')),
      [],
    );
    const hrefs = await page
      .locator('a')
      .evaluateAll((links) => links.map((link) => (link as unknown as { href: string }).href));
    for (const target of ['', 'dashboard', 'api-reference', 'cli-reference']) {
      assert.ok(hrefs.includes(`${na.url}/${target}`), target);
    }
    await page.getByRole('searchbox').fill('renew');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${na.url}/search?q=renew`);
    assert.equal(await page.getByRole('searchbox').inputValue(), 'renew');
  });
}

test('a hostile network name is text on it', async (t) => {
  const { folder } = makeNetworkFolder(HOSTILE_NAME);
  t.after(() => rmSync(folder, { recursive: true }));
  await using hostile = await startTestAuthority({ dataDir: folder });
  await using visit = await browser.visit(`${hostile.url}/nowhere`);
  assert.equal(await visit.page.locator('.brand-name').textContent(), HOSTILE_NAME);
  assert.equal(await visit.page.evaluate('window.hacked'), undefined);
});
