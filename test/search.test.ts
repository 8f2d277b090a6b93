/** The search page for everything public, and the keys that open it. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { LONGEST_SEARCH } from '../src/pages/site/search.ts';
import { assertSound, HOSTILE_NAME, WIDE } from './support/browser.ts';
import { attributesOf, startPages } from './support/pages.ts';
import { get } from './support/requests.ts';
import { issued, recognize } from './support/trust.ts';

const { na, browser } = await startPages({ commands: commandReference(buildProgram()) });
let treatyId: string;

const ATTESTATION = '0b7f3c1e-93a4-4d4e-9f0c-6f1a2b3c4d5e';

before(async () => {
  const { treaty_id } = await issued(recognize(na, { subject_sovereign_id: 'north-rail' }));
  treatyId = String(treaty_id);
  await issued(recognize(na, { subject_sovereign_id: HOSTILE_NAME }));
});

async function hrefsFor(query: string): Promise<string[]> {
  const { status, text } = await get(na, `/search?q=${encodeURIComponent(query)}`);
  assert.equal(status, 200);
  const [, found = ''] = text.split('id="found"');
  return attributesOf(found, 'a', 'href');
}

test('finds pages, routes, commands, sovereigns, capabilities and attestations', async () => {
  for (const [query, href] of [
    ['dashb', './dashboard'],
    ['heartbeat', './api-reference#post-heartbeat'],
    ['node join', './cli-reference#node-join'],
    ['NORTH', './sovereign?id=north-rail'],
    ['survey', './capability?name=survey'],
    [ATTESTATION, `./attestation?id=${ATTESTATION}`],
  ] as const) {
    assert.ok((await hrefsFor(query)).includes(href), query);
  }
});

test('only what has the form of its id is looked up as an attestation', async () => {
  assert.deepEqual(
    (await hrefsFor('badge-7')).filter((href) => href.startsWith('./attestation')),
    [],
  );
});

test('a treaty is found by the beginning of its id, and not by another part', async () => {
  const href = `./treaty?id=${treatyId}`;
  assert.ok((await hrefsFor(treatyId.slice(0, 8).toUpperCase())).includes(href));
  assert.ok(!(await hrefsFor(treatyId.slice(9, 18))).includes(href));
});

test('an empty search says what to type, and endless text is truncated', async () => {
  assert.match((await get(na, '/search')).text, /Type a part of a name/);
  assert.deepEqual(await hrefsFor(' '), []);
  const { text } = await get(na, `/search?q=${'x'.repeat(3500)}`);
  assert.ok(text.includes(`value="${'x'.repeat(LONGEST_SEARCH)}"`));
  assert.match(text, /0 matches\./);
});

test('many matches are counted, and the first of them are shown', async () => {
  const { text } = await get(na, '/search?q=e');
  assert.match(text, /And \d+ more: narrow the search\./);
  assert.ok((await hrefsFor('e')).length < 60);
});

test('a slash opens it from any page, and matches can be reached with the keyboard alone', async () => {
  await using visit = await browser.visit(`${na.url}/cli-reference`);
  const { page } = visit;
  await page.keyboard.press('/');
  await page.waitForURL(`${na.url}/search#q`);
  await page.keyboard.type('north');
  await page.waitForURL(`${na.url}/search?q=north`);
  assert.match(await page.getByRole('status').innerText(), /^1 match\.$/);
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'north-rail');
  await page.keyboard.press('ArrowUp');
  assert.equal(await page.evaluate('document.activeElement.name'), 'q');
  const composed = `document.activeElement.dispatchEvent(new KeyboardEvent('keydown',
    { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }))`;
  assert.equal(await page.evaluate(composed), true, 'Enter that ends a composition opens nothing');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${na.url}/sovereign?id=north-rail`);
  await page.goBack();
  assert.equal(await page.inputValue('#q'), 'north');
  await page.getByRole('link', { name: 'north-rail' }).focus();
  await page.keyboard.press('/');
  assert.equal(await page.evaluate('document.activeElement.value'), 'north');
  await page.goBack();
  await page.waitForURL(`${na.url}/cli-reference`);
  assert.deepEqual(visit.problems, []);
});

test('Ctrl-K opens it too, even from a text field, where a slash is just a slash, and the page of an unknown address, however deep', async () => {
  await using visit = await browser.visit(`${na.url}/trust`);
  const { page } = visit;
  await page.focus('#to');
  await page.keyboard.press('/');
  assert.equal(await page.inputValue('#to'), '/');
  await page.keyboard.press('Control+k');
  await page.waitForURL(`${na.url}/search#q`);
  await page.goto(`${na.url}/no/such/place`);
  await page.keyboard.press('/');
  await page.waitForURL(`${na.url}/search#q`);
});

for (const javaScript of [true, false]) {
  test(`is a page ${javaScript ? 'with' : 'without'} scripts, and hostile names remain text`, async () => {
    await using visit = await browser.visit(`${na.url}/search`, { javaScript });
    const { page } = visit;
    await page.fill('#q', 'script');
    await page.locator('main form button').click();
    await page.waitForURL(/\/search\?q=script$/);
    assert.ok((await page.locator('#found').innerText()).includes('<script>'));
    if (!javaScript) return;
    assert.equal(await page.evaluate('window.hacked'), undefined);
    await assertSound(visit);
  });
}

test('without scripts, the link at the top leads to it', async () => {
  await using visit = await browser.visit(`${na.url}/dashboard`, {
    javaScript: false,
    width: WIDE,
  });
  await visit.page.locator('.search-link').click();
  await visit.page.waitForURL(`${na.url}/search#q`);
});
