/**
 * `/trust` in a real browser: why one sovereign trusts another, what would change that, and how it was before
 * [core-6-3-1].
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { formatInstant } from '../src/base/timestamp.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { assertSound, HOSTILE_NAME, NARROW, sharedBrowser, type Visit } from './support/browser.ts';
import { HOUR, SECOND } from './support/clock.ts';
import { get, outcome, send } from './support/requests.ts';
import { issued, recognize, revokeTreaty } from './support/trust.ts';

const open = sharedBrowser();
let na: TestAuthority;
let start: number;
/** One treaty from alpha to beta, two from beta to gamma, a revoked one from alpha to gamma, and a dead end. */
const ids: Record<string, string> = {};

before(async () => {
  na = await startTestAuthority({ environment: { MESH_RATE_LIMIT_EXPLAIN: 'off' } });
  start = na.clock.now();
  for (const [id, from, to, hours] of [
    ['first', 'alpha', 'beta', 100],
    ['second', 'beta', 'gamma', 50],
    ['third', 'beta', 'gamma', 80],
    ['ended', 'alpha', 'gamma', 100],
    ['stray', 'beta', HOSTILE_NAME, 100],
  ] as const) {
    const terms = { issuer_sovereign_id: from, subject_sovereign_id: to, validity_hours: hours };
    ids[id] = String((await issued(recognize(na, terms))).treaty_id);
    na.clock.advance(SECOND);
  }
  await revokeTreaty(na, ids.ended, { reason: 'no longer <needed>' });
  na.clock.advance(HOUR);
});

after(() => na?.[Symbol.asyncDispose]());

const ASKED = '/trust?from=alpha&to=gamma';

/** The contents of the drawn path: sovereigns, and what is between them. */
async function drawn({ page }: Visit): Promise<string[]> {
  const parts = page.locator('.path-drawing :is(.path-end, .hop)');
  const texts = await parts.evaluateAll((found) => found.map((each) => each.textContent ?? ''));
  return texts.map((text) => text.replace(/\d{4}-\d\d-\d\d \d\d:\d\d UTC/g, 'TIME'));
}

test('an answer is drawn with the scope and the end of each treaty, or with what is missing, and accessible', async () => {
  const hop = 'for any roleuntil TIME';
  for (const [address, parts] of [
    ['/trust', []],
    [ASKED, ['alpha', hop, 'beta', hop, 'gamma']],
    [`${ASKED}&as_of=2020-01-01T00:00:00Z`, ['alpha', 'not known?', 'gamma']],
    [
      `/trust?from=alpha&to=${encodeURIComponent(HOSTILE_NAME)}&without=${ids.stray}`,
      ['alpha', 'active treaties', 'beta', 'left out✕', '</title><script>w…2C⟩ שלום'],
    ],
  ] as const) {
    await using visit = await open(na.url + address);
    assert.deepEqual(await drawn(visit), parts);
    if (parts.length === 5) await assertSound(visit);
    else assert.deepEqual(await visit.violations(), []);
    await visit.page.setViewportSize({ width: 768, height: 900 });
    assert.equal(await visit.overflow(), 0);
    assert.deepEqual(visit.problems, []);
  }
});

test('the drawing says that a treaty was revoked, or that nothing leads there', async () => {
  await using visit = await open(na.url);
  const { page } = visit;
  for (const [address, parts] of [
    [`${ASKED}&without=${ids.first}`, ['alpha', 'revoked✕since TIME', 'gamma']],
    ['/trust?from=gamma&to=alpha', ['gamma', 'no active treaties✕', 'alpha']],
    ['/trust?from=alpha&to=alpha', []],
  ] as const) {
    await page.goto(na.url + address);
    assert.deepEqual(await drawn(visit), parts);
    assert.equal(await visit.overflow(), 0);
  }
  assert.deepEqual(visit.problems, []);
});

test('without a script the question can be asked from the home page, answered, and refined', async () => {
  await using visit = await open(na.url, { javaScript: false, width: NARROW });
  const { page } = visit;
  assert.equal(await page.locator('#trust').textContent(), 'Why does one sovereign trust another?');
  assert.equal(await page.inputValue('#from'), 'alpha');
  await page.fill('#to', 'gamma');
  await page.click('main form button');
  assert.match(page.url(), /\/trust\?from=alpha&to=gamma&as_of=#answer$/);

  const notice = page.locator('.posture');
  assert.match((await notice.textContent()) ?? '', /^Trusted.*alpha trusts gamma over 2 active/s);
  const steps = page.locator('.path-steps li');
  assert.equal(await steps.count(), 2);
  assert.match((await steps.first().textContent()) ?? '', /Scope: any role; attestations that are/);
  const until = await page.locator('.facts time').first().getAttribute('datetime');
  assert.equal(until, formatInstant(start + 2 * SECOND + 80 * HOUR - SECOND));

  const cut = page.locator('#cut-treaties li');
  assert.equal(await cut.count(), 1);
  const candidates = await page.locator('#candidates li').allTextContents();
  assert.equal(candidates.length, 3);
  assert.match(candidates[0] ?? '', /revoked\s+It ended at .* UTC: no longer <needed>\./);
  assert.match(candidates[1] ?? '', /as short/);
  assert.match(candidates[2] ?? '', /leads elsewhere/);

  await cut.first().getByRole('link', { name: 'What if it ended?' }).click();
  assert.ok(page.url().includes(`without=${ids.first}`));
  assert.match(
    (await notice.textContent()) ?? '',
    /^Not trusted.*Without 1 treaty: alpha does not/s,
  );
  const missing = page.locator('#candidates li', { hasText: 'On its own, it would establish' });
  assert.equal(await missing.count(), 2);

  await page.uncheck('.left-out input');
  const earlier = new Date(start + SECOND).toISOString();
  await page.fill('#as-of', earlier.replace('Z', ''));
  await page.click('main form button');
  const asked = new URL(page.url()).searchParams;
  assert.deepEqual([...asked.keys()], ['from', 'to', 'as_of']);
  assert.equal(Date.parse(`${asked.get('as_of')}Z`), Date.parse(earlier));
  assert.match((await notice.textContent()) ?? '', /^Trusted.*As of .* UTC: alpha trusts gamma/s);
  await page.fill('#as-of', '2020-01-01T00:00');
  await page.click('main form button');
  assert.match((await notice.textContent()) ?? '', /^Not known.*The first treaty was issued at/s);
  assert.equal(await page.inputValue('#as-of'), '2020-01-01T00:00');
  assert.deepEqual(visit.problems, []);
});

test('a name that is shortened in the drawing is available in full', async () => {
  const hostile = encodeURIComponent(HOSTILE_NAME);
  await using visit = await open(`${na.url}/trust?from=alpha&to=${hostile}`);
  const end = visit.page.locator('.path-end').last();
  assert.match((await end.textContent()) ?? '', /^.{17}….{8}$/u);
  assert.match((await end.getAttribute('title')) ?? '', /^<\/title><script>window\.hacked=1</);
  await end.click();
  await visit.page.waitForURL(/\/sovereign\?id=/);
  assert.deepEqual(visit.problems, []);
});

test('the answer can be downloaded as one file with the digest of the graph', async () => {
  await using visit = await open(`${na.url}${ASKED}&without=${ids.second}`);
  const { page } = visit;
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download this answer as JSON' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), 'trust-path.json');
  const answer = JSON.parse(readFileSync((await download.path()) ?? '', 'utf8'));
  assert.deepEqual([answer.trusted, answer.without], [true, [ids.second]]);
  assert.equal(answer.graph_digest, (await get(na, '/atlas.json')).body.graph_digest);
  const shown = await page.locator('.facts dd.id').textContent();
  assert.equal(shown, answer.graph_digest);
});

test('a refused question is explained on the page to a browser, and in the envelope to programs', async () => {
  for (const [query, status, message] of [
    ['as_of=never', 400, 'as_of must be a timestamp that is not in the future'],
    ['without=%3Cb%3E', 404, 'The treaty does not exist'],
  ] as const) {
    const headers = { Accept: 'text/html' };
    const answer = await send(na, 'GET', `${ASKED}&${query}`, { headers });
    assert.equal(answer.status, status);
    assert.ok(answer.text.includes(`<p class="notice danger" id="answer">${message}.</p>`));
    const plain = await get(na, `${ASKED}&${query}`);
    assert.deepEqual([plain.status, plain.body.error.message], [status, message]);
  }
});

test('names and ids are text, wherever they appear', async () => {
  const name = encodeURIComponent(HOSTILE_NAME);
  await using visit = await open(`${na.url}/trust?from=${name}&to=alpha`);
  assert.equal(await visit.page.evaluate('window.hacked'), undefined);
  assert.equal(await visit.page.inputValue('#from'), HOSTILE_NAME);
  assert.deepEqual(visit.problems, []);
});

test('the atlas links a path to its explanation', async () => {
  await using visit = await open(`${na.url}/atlas?from=alpha&to=gamma`);
  await visit.page.getByRole('link', { name: 'Why, until when' }).click();
  assert.match(visit.page.url(), /\/trust\?from=alpha&to=gamma#answer$/);
  assert.equal(await visit.page.locator('.posture.ok').count(), 1);
});

test('questions count as explanations; too many give a page to clients that prefer one, and the envelope to programs', async () => {
  await using limited = await startTestAuthority({
    environment: { MESH_RATE_LIMIT_EXPLAIN: '1/60' },
  });
  assert.equal(outcome(await get(limited, '/trust')), '200');
  assert.equal(outcome(await get(limited, ASKED)), '200');
  for (const accept of ['*/*', 'application/json']) {
    const refused = await send(limited, 'GET', ASKED, { headers: { Accept: accept } });
    assert.equal(outcome(refused), '429 rate_limit_exceeded');
    assert.equal(refused.headers.get('retry-after'), '60');
  }
  const page = await send(limited, 'GET', ASKED, { headers: { Accept: 'text/html' } });
  assert.deepEqual(
    ['content-type', 'retry-after', 'vary', 'cache-control'].map((name) => page.headers.get(name)),
    ['text/html; charset=utf-8', '60', 'Accept', 'no-store'],
  );
  await using visit = await open(limited.url + ASKED, { width: NARROW });
  assert.match(
    await visit.page.innerText('#answer'),
    /^Too many questions: try again in 60 seconds\.$/,
  );
  assert.equal(await visit.page.inputValue('#to'), 'gamma');
  assert.deepEqual(await visit.violations(), []);
  assert.equal(outcome(await get(limited, '/trust')), '200');
});
