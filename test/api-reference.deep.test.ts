/** The examples and the search of `/api-reference`. `pages.test.ts` tests that it describes every route. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { ROUTES } from '../src/edge/routes/table.ts';
import { apiReferencePage } from '../src/pages/reference/api-reference.ts';
import { anchorOf } from '../src/pages/reference/contents.ts';
import { signingSetup } from '../src/pages/reference/curl.ts';
import { answerExample, bodyExample } from '../src/pages/reference/example.ts';
import { startTestAuthority } from './support/authority.ts';
import { NARROW } from './support/browser.ts';
import { REAL_TIME } from './support/clock.ts';
import { startPages } from './support/pages.ts';
import { auditEvents, send, sendRaw } from './support/requests.ts';
import { exampleRefusal, inExampleOrder } from './support/routes.ts';
import { openShell } from './support/shell.ts';

const { na, browser } = await startPages({ commands: commandReference(buildProgram()) });

const visit = (search = '') => browser.visit(`${na.url}/api-reference${search}`);

test('a description adds to the summary, and shows code as code', async () => {
  await using reference = await visit();
  const texts = await reference.page.locator('[data-entry] > p').allTextContents();
  assert.equal(texts.length, ROUTES.length);
  for (const [index, { summary, description = '' }] of ROUTES.entries()) {
    assert.ok(!description.startsWith(summary), summary);
    assert.doesNotMatch(texts[index] ?? '', /`/);
  }
  const described = reference.page.locator('#get-trust > p code').first();
  assert.equal(await described.textContent(), 'GET /connectome/trust-path');
});

/** The texts of the examples by anchor and label; the signing functions are at `signing`. */
async function examplesOf(page: Page): Promise<Map<string, Map<string, string>>> {
  const found = await page.locator('.example figure').evaluateAll((figures) =>
    figures.map((figure) => ({
      anchor: figure.closest('[data-entry]')?.id ?? 'signing',
      label: figure.querySelector('figcaption')?.firstChild?.textContent ?? '',
      text: figure.querySelector('pre')?.textContent ?? '',
    })),
  );
  const examples = new Map<string, Map<string, string>>();
  for (const { anchor, label, text } of found) {
    examples.set(anchor, (examples.get(anchor) ?? new Map()).set(label, text));
  }
  return examples;
}

test('the page is rendered one route at a time, once for all concurrent requests', async () => {
  const slices = [...apiReferencePage(ROUTES, 'alpha', null)];
  assert.ok(slices.length >= ROUTES.length, `${slices.length} slices`);
  await using fresh = await startTestAuthority();
  const answers = await Promise.all([1, 2, 3].map(() => send(fresh, 'GET', '/api-reference')));
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers.get('etag')]),
    answers.map(() => [200, answers[0]?.headers.get('etag')]),
  );
});

test('each route has an example request and response: those of the OpenAPI document', async () => {
  await using page = await visit();
  const { body: document } = await send(na, 'GET', '/swagger.json');
  const examples = await examplesOf(page.page);
  for (const route of ROUTES) {
    const example = examples.get(anchorOf(route)) ?? new Map<string, string>();
    const { requestBody, responses } = document.paths[route.path][route.method.toLowerCase()];
    const sent = example.get('Body');
    assert.equal(sent === undefined, route.body === undefined, route.path);
    if (sent !== undefined) {
      assert.deepEqual(JSON.parse(sent), requestBody.content['application/json'].example);
      assert.deepEqual(JSON.parse(sent), JSON.parse(JSON.stringify(bodyExample(route, 'alpha'))));
    }
    const answered = example.get('Answer');
    assert.equal(answered === undefined, answerExample(route, 'alpha') === undefined, route.path);
    if (answered !== undefined) {
      const described = responses[200].content['application/json'].example;
      assert.deepEqual(JSON.parse(answered), described);
    }
    assert.ok(example.get('Request')?.includes(`curl -s `), route.path);
  }
});

/**
 * A removal signed with the current time passes the checks at which the OpenAPI example fails, so it is refused later.
 */
const SIGNED_REFUSALS: Readonly<Record<string, string>> = {
  'DELETE /agents/{node_public_key}': '404 agent_not_registered',
};

test('each command on the page does in a shell what the page says', async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), 'mesh-na-curl-'));
  t.after(() => rmSync(cwd, { recursive: true }));
  await using own = await startTestAuthority();
  symlinkSync(own.dataDir, join(cwd, 'mesh-data'));
  await using page = await browser.visit(`${own.url}/api-reference`);
  const examples = await examplesOf(page.page);
  await using shell = openShell({ cwd, env: { PATH: process.env.PATH } });
  assert.deepEqual(await shell.run(examples.get('signing')?.get('Once in a shell') ?? ''), {
    output: '',
    code: 0,
  });
  await shell.run(`curl() { command curl -w '\\n%{http_code}' "$@"; }`);
  const routes = inExampleOrder(ROUTES, {
    method: (route) => route.method,
    isRefused: (route) => exampleRefusal(route) !== undefined,
  });
  for (const route of routes) {
    const name = `${route.method} ${route.path}`;
    const { output } = await shell.run(examples.get(anchorOf(route))?.get('Request') ?? '');
    const status = output.slice(output.lastIndexOf('\n') + 1);
    const code = /^\{"error":\{"code":"(\w+)"/.exec(output)?.[1];
    const refusal = SIGNED_REFUSALS[name] ?? exampleRefusal(route);
    if (refusal === undefined) assert.match(status, /^20[01]$/, `${name}: ${output}`);
    else assert.equal(`${status} ${code}`, refusal, name);
  }
});

test('where version 1 is accepted, the functions on the page sign it too', async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), 'mesh-na-curl-'));
  t.after(() => rmSync(cwd, { recursive: true }));
  const environment = { MESH_ADMIN_SIGNATURE_V1: 'accept' };
  await using own = await startTestAuthority({ clock: REAL_TIME, environment });
  symlinkSync(own.dataDir, join(cwd, 'mesh-data'));
  await using shell = openShell({ cwd, env: { PATH: process.env.PATH } });
  await shell.run(signingSetup(own.url));
  // The text has no audience, method, path, query and `v`, as `docs/signing.md` describes.
  const { output } = await shell.run(`body='{"count":1,"roles":["role:client"]}'
timestamp=$(now) nonce=$(nonce)
printf '{"body":%s,"key_id":"%s","nonce":"%s","timestamp":"%s"}' \\
  "$body" "$key_id" "$nonce" "$timestamp" > text
curl -s -o /dev/null -w '%{http_code}' ${own.url}/admin/invite -d "$body" \\
  -H "X-Admin-Key-Id: $key_id" -H "X-Admin-Timestamp: $timestamp" \\
  -H "X-Admin-Nonce: $nonce" -H "X-Admin-Signature: $(sign operator.der)"`);
  assert.equal(output, '200');
  assert.equal(auditEvents(own).filter(({ type }) => type === 'operator_signature_v1').length, 1);
});

test('the page shows the address at which it was requested, whatever it contains', async () => {
  await using proxied = await startTestAuthority({
    environment: { MESH_PUBLIC_URL: "https://na.example/o'neil&co" },
  });
  await using page = await browser.visit(`${proxied.url}/api-reference`);
  const examples = await examplesOf(page.page);
  const request = examples.get('get-genesis')?.get('Request');
  assert.equal(request, "curl -s 'https://na.example/o%27neil&co/genesis'");
  await using local = await visit();
  const example = (await examplesOf(local.page)).get('get-genesis')?.get('Request');
  assert.equal(example, `curl -s '${na.url}/genesis'`);
  const answers = ['one.example', 'other.example:8080'].map((Host) =>
    sendRaw(na, 'GET', '/api-reference', { headers: { Host } }),
  );
  const [one, other] = await Promise.all(answers);
  assert.equal(one?.text, other?.text, 'the browser alone knows the address');
});

for (const [place, clipboard] of [
  ['a page that may use the clipboard', 'granted'],
  ['a page that has none, because it came over plain HTTP', 'absent'],
] as const) {
  test(`each example is copied with one press on ${place}`, async () => {
    await using opened = await browser.visit(`${na.url}/api-reference`, { isApart: true });
    const { page } = opened;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    if (clipboard === 'absent') {
      await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    }
    const examples = await examplesOf(page);
    const entry = page.locator('#post-join');
    await entry.getByText('Example', { exact: true }).click();
    const reader = await page.context().newPage();
    for (const label of ['Body', 'Request', 'Answer']) {
      await page.bringToFront();
      await entry.getByRole('button', { name: `Copy: ${label} POST /join` }).click();
      await entry.getByText('Copied').first().waitFor();
      await reader.goto(`${na.url}/healthz`);
      await reader.bringToFront();
      const copied = await reader.evaluate('navigator.clipboard.readText()');
      assert.equal(copied, examples.get('post-join')?.get(label));
    }
    assert.deepEqual(opened.problems, []);
  });
}

test('every example has a button, none without JavaScript, and everything opens without it', async () => {
  await using scripted = await visit();
  const figures = await scripted.page.locator('.example figure').count();
  assert.equal(await scripted.page.locator('.example .copy').count(), figures);
  await using plain = await browser.visit(`${na.url}/api-reference`, { javaScript: false });
  assert.equal(await plain.page.locator('.copy').count(), 0);
  const entry = plain.page.locator('#get-genesis');
  await entry.getByText('Example', { exact: true }).click();
  const shown = "curl -s 'https://authority.example/genesis'";
  assert.equal(await entry.getByText(shown).isVisible(), true);
  const note = plain.page.getByText('with the address of this page');
  assert.equal(await note.isVisible(), true, 'no script is there to do so');
});

test('opened examples have no barrier, and nothing in them scrolls sideways', async () => {
  const options = { theme: 'dark', width: NARROW } as const;
  await using opened = await browser.visit(`${na.url}/api-reference`, options);
  for (const anchor of ['post-join', 'post-admin-invite', 'delete-agents-node-public-key']) {
    const entry = opened.page.locator(`[id="${anchor}"]`);
    await entry.getByText('Example', { exact: true }).click();
  }
  assert.deepEqual(await opened.violations(), []);
  assert.equal(await opened.overflow(), 0);
});

test('a signed example links to what signs it', async () => {
  await using opened = await visit();
  const { page } = opened;
  const setup = page.locator('#signing');
  assert.equal(await setup.isVisible(), false);
  await page.locator('#post-heartbeat').getByText('Example', { exact: true }).click();
  await page.locator('#post-heartbeat').getByRole('link', { name: 'set up signing' }).click();
  await setup.waitFor({ state: 'visible' });
});

for (const path of ['/api-reference', '/cli-reference']) {
  test(`a slash on ${path} moves to the search, and is an ordinary character inside it`, async () => {
    await using opened = await browser.visit(na.url + path);
    const { page } = opened;
    const field = page.locator('#filter');
    await field.focus();
    await page.keyboard.type('/join');
    assert.equal(await field.inputValue(), '/join');
    await field.blur();
    await page.keyboard.press('Control+/');
    assert.equal(new URL(page.url()).pathname, path);
    await page.keyboard.press('/');
    await page.waitForURL(`${na.url}/search#q`);
  });

  test(`the search of ${path} is in the URL, so it can be shared, combined with an anchor, and undone with Back`, async () => {
    await using opened = await browser.visit(`${na.url}${path}?q=revoke%20key`);
    const { page } = opened;
    const field = page.getByRole('searchbox');
    // The address that the page itself sees is up to date earlier than the browser driver's.
    const here = async () => new URL(await page.evaluate<string>('location.href'));
    assert.equal(await field.inputValue(), 'revoke key');
    const shown = await page.locator('[data-entry]:visible').count();
    const all = await page.locator('[data-entry]').count();
    assert.ok(shown > 0 && shown < all);
    assert.equal(await page.locator('[data-filter-count]').textContent(), `${shown} of ${all}`);
    assert.equal(await page.locator('.contents li:visible').count(), shown);
    await field.fill('a&b #c');
    assert.equal((await here()).searchParams.get('q'), 'a&b #c');
    await using shared = await browser.visit((await here()).href);
    assert.equal(await shared.page.getByRole('searchbox').inputValue(), 'a&b #c');
    await page.evaluate("location.hash = 'general'");
    await field.fill('treaty');
    assert.equal((await here()).hash, '#general');
    await page.goBack();
    assert.equal(await field.inputValue(), 'a&b #c');
    await field.press('Escape');
    assert.equal((await here()).href, na.url + path);
    assert.deepEqual(opened.problems, []);
  });
}

test('the page with all examples stays small', async (t) => {
  const { text } = await send(na, 'GET', '/api-reference');
  const sizes = { plain: Buffer.byteLength(text), gzip: gzipSync(text).byteLength };
  t.diagnostic(`/api-reference: ${sizes.plain} bytes, ${sizes.gzip} compressed`);
  assert.ok(sizes.gzip < 470 * ROUTES.length);
  assert.ok(sizes.plain < 4600 * ROUTES.length);
});
