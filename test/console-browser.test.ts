/** `mesh-na console` in a browser: using only the keyboard, live, without scripts. `console-pages.deep` visits every page. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { sharedAuthority, startTestAuthority } from './support/authority.ts';
import { assertSound, sharedBrowser } from './support/browser.ts';
import { HOUR } from './support/clock.ts';
import { startTestConsole, visitConsole } from './support/console.ts';
import { auditEvents, joinedNode, operate } from './support/requests.ts';

const authority = sharedAuthority();
const browse = sharedBrowser();

/** Presses Tab, past the navigation, until the focus is on an element with this text, or on the field of this name. */
async function tabTo(page: Page, wanted: string, most = 80): Promise<void> {
  for (let presses = 0; presses < most; presses += 1) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate<string>(
      'document.activeElement?.name || document.activeElement?.textContent || ""',
    );
    if (focused === wanted) return;
    if (focused === 'Skip to content') await page.keyboard.press('Enter');
  }
  assert.fail(`Tab does not lead to ${wanted}`);
}

/**
 * Presses a key that leads to a page with this heading; waits until it has loaded, because leaving it earlier would
 * make requests fail.
 */
async function press(page: Page, key: string, heading: string): Promise<void> {
  await page.keyboard.press(key);
  await page.locator('h1', { hasText: new RegExp(`^\\s*${heading}`) }).waitFor();
  await page.waitForLoadState();
}

/** From the question to the answer; what is asked is read before what confirms it. */
async function confirmed(page: Page, label: string, number?: string): Promise<void> {
  assert.equal(await page.evaluate('document.activeElement?.tagName'), 'MAIN');
  if (number !== undefined) {
    await tabTo(page, 'number', 6);
    await page.keyboard.type(number);
  }
  await tabTo(page, label, 7);
  await press(page, 'Enter', 'Done');
}

// `console-pages.deep` checks the accessibility of every page.
test('an operator opens the console, finds a stolen node and revokes it using only the keyboard', async () => {
  const na = await authority();
  const node = await joinedNode(na, { name: 'edge-7', labels: { rack: 'r1' } });
  await joinedNode(na, { name: 'edge-8' });
  await using visit = await visitConsole(browse, na);
  const { page } = visit;

  await page.keyboard.press('?');
  assert.ok(await page.isVisible('[data-keys]'));
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('edge-7');
  await page.keyboard.press('Enter');
  await page.waitForURL(/q=edge-7/);
  await page.waitForLoadState();
  assert.equal(await page.locator('tbody tr').count(), 1);
  await page.keyboard.press('j');
  await press(page, 'Enter', 'edge-7');
  await assertSound(visit);

  await tabTo(page, 'Revoke…');
  await press(page, 'Enter', 'Revoke a');
  await page.locator('[name="reason"]:focus').waitFor();
  await page.keyboard.type('The key');
  await tabTo(page, 'Revoke…', 2);
  await press(page, 'Enter', 'Confirm');
  await assertSound(visit);
  await confirmed(page, 'Revoke', 'edge-7');
  const text = await page.innerText('main');
  for (const part of [
    'certificate_revoked',
    node.certId,
    'crl_sequence',
    'mesh-na certificate revoke',
  ]) {
    assert.ok(text.includes(part), part);
  }
  const revoked = auditEvents(na).filter(({ type }) => type === 'certificate_revoked');
  assert.deepEqual(
    revoked.map(({ details }) => [details.cert_id, details.reason]),
    [[node.certId, 'key_compromise']],
  );
  await tabTo(page, 'Continue', 8);
  await press(page, 'Enter', 'edge-7');
  const shown = await page.innerText('main');
  assert.match(shown, /Revoked.*key_compromise/s);
  assert.doesNotMatch(shown, /If it were revoked/);
  const stored = await page.evaluate(
    'localStorage.length + sessionStorage.length + document.cookie.length',
  );
  assert.equal(stored, 0, 'nothing is stored that scripts can read');
});

test('an operator withdraws an invite, and rolls back the policy, using only the keyboard', async () => {
  const na = await authority();
  await using visit = await visitConsole(browse, na);
  const { page, open } = visit;
  await open('/invites');
  await tabTo(page, 'Create invites…');
  await press(page, 'Enter', 'Create invites');
  await tabTo(page, 'batch');
  await page.keyboard.type('keys');
  await press(page, 'Enter', 'Confirm');
  await confirmed(page, 'Create');
  await open('/invites?batch=keys');
  // The row is focused by its link to the batch; what can be done with the invite follows.
  await page.keyboard.press('j');
  await tabTo(page, 'Withdraw…', 2);
  await press(page, 'Enter', 'Confirm');
  await confirmed(page, 'Withdraw');

  await open('/policy');
  na.clock.advance(1000);
  await tabTo(page, 'Publish…');
  await press(page, 'Enter', 'Confirm');
  await confirmed(page, 'Publish');
  await tabTo(page, 'Continue', 8);
  await press(page, 'Enter', 'Policy');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  assert.equal(await page.evaluate('document.activeElement?.tagName'), 'TR');
  await page.keyboard.press('Tab');
  await press(page, 'Enter', 'Confirm');
  await confirmed(page, await page.innerText('.confirm button'));
  assert.deepEqual(visit.problems, []);
});

test('works without scripts, and switches the theme', async () => {
  const na = await authority();
  await joinedNode(na, { name: 'plain-1' });
  await using console = await startTestConsole(na);
  await using visit = await browse(`${console.origin}/`, { javaScript: false });
  const { page } = visit;
  await page.fill('#token', new URL(console.url).hash.slice(1));
  await page.click('button:has-text("Open")');
  await page.waitForURL(/\/overview$/);
  await page.fill('#q', 'plain-1');
  await page.click('button:has-text("Find")');
  await page.click('tbody a');
  await page.fill('[name="labels"]', 'tier=one');
  await page.click('text=Set name and labels…');
  await page.click('button:has-text("Set name and labels")');
  assert.match(await page.innerText('main'), /node_described/);
  await page.click('.theme');
  assert.equal(await page.getAttribute('html', 'data-theme'), 'dark');
  await page.click('.theme');
  assert.equal(await page.getAttribute('html', 'data-theme'), 'light');
});

test('a page stays current while it is open, and what was typed and opened stays', async () => {
  const na = await authority();
  await joinedNode(na, { name: 'live-1' });
  await using visit = await visitConsole(browse, na);
  const { page, open } = visit;
  await open('/nodes?q=live-');
  await page.locator('[data-live-status="live"]').waitFor();
  await page.locator('summary').click();
  await page.fill('#role', 'half of a role');
  await page.keyboard.press('Escape');
  const link = page.getByRole('link', { name: 'live-1', exact: true });
  await link.focus();
  await joinedNode(na, { name: 'live-2' });
  await page.getByRole('link', { name: 'live-2', exact: true }).waitFor();
  assert.equal(await page.inputValue('#role'), 'half of a role');
  assert.equal(await page.getAttribute('details', 'open'), '');
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'live-1');
  await page.click('.theme');
  assert.equal(await page.getAttribute('html', 'data-theme'), 'dark');
  assert.equal(await page.inputValue('#role'), 'half of a role');
  await page.reload();
  assert.equal(await page.getAttribute('html', 'data-theme'), 'dark');
  assert.deepEqual(visit.problems, []);
});

test('a row that a key has focused stays focused when the page changes', async () => {
  const na = await authority();
  await using visit = await visitConsole(browse, na);
  const { page, open } = visit;
  await open('/operators');
  await page.locator('[data-live-status="live"]').waitFor();
  await page.keyboard.press('j');
  const focused = () => page.evaluate('document.activeElement?.id');
  const row = await focused();
  assert.match(String(row), /^operators-/);
  // What the server did not write is gone after the change.
  await page.evaluate("document.querySelector('#operators caption').dataset.old = ''");
  await operate(na, '/admin/invite', {});
  await page.locator('#operators caption:not([data-old])').waitFor();
  assert.equal(await focused(), row);
});

test('a revocation is in the console within a second of its event; a busy log is followed every five', async () => {
  const na = await authority();
  const first = await joinedNode(na, { name: 'watched-1' });
  const second = await joinedNode(na, { name: 'watched-2' });
  await using visit = await visitConsole(browse, na);
  const { page, open } = visit;
  await page.clock.install();
  await open('/nodes?q=watched-&status=revoked');
  await page.locator('[data-live-status="live"]').waitFor();
  const fetched: string[] = [];
  page.on('request', (request) => {
    if (request.resourceType() === 'fetch') fetched.push(request.url());
  });
  await page.clock.pauseAt(Date.now() + 5000);
  const revoke = async ({ certId }: { readonly certId: string }) => {
    // Another reader of the same events: when it has the next one, so has the page, or soon.
    await page.evaluate(`new Promise((resolve) => {
      const events = new EventSource('./audit-news');
      events.addEventListener('open', resolve);
      window.next = new Promise((next) => events.addEventListener('message', () => {
        events.close();
        next();
      }));
    })`);
    await operate(na, '/admin/revoke', { cert_id: certId });
    await page.evaluate('window.next');
  };
  const shown = (name: string) => page.getByRole('link', { name, exact: true });
  // The page may get the event a moment after the other reader. Once it fetches, the time has to stay.
  const untilShown = async (name: string, ms: number) => {
    const before = fetched.length;
    while (fetched.length === before) await page.clock.runFor(ms);
    while ((await shown(name).count()) === 0) await new Promise(setImmediate);
  };
  await revoke(first);
  await untilShown('watched-1', 1000);
  const before = fetched.length;
  await revoke(second);
  await page.clock.runFor(3000);
  assert.equal(fetched.length, before);
  await untilShown('watched-2', 2000);
  assert.deepEqual(visit.problems, []);
});

test('a page says when it is no longer live, and since when, and goes on by itself', async () => {
  const na = await startTestAuthority();
  await using visit = await visitConsole(browse, na);
  const { page } = visit;
  const status = page.locator('[data-live-status]');
  const isNow = (state: string) =>
    page.locator(`[data-live-status="${state}"]`).waitFor({ state: 'attached' });
  await isNow('live');
  await na.stop();
  await isNow('stale');
  const lost = /^Connection lost\. This page shows the state as of .* UTC\. Reconnecting…$/;
  assert.match(await status.innerText(), lost);
  assert.match(await page.innerText('#posture-word'), /^Last updated .* UTC: /);
  assert.deepEqual(await visit.violations(), []);
  const flags = { port: new URL(na.url).port };
  await using again = await startTestAuthority({ dataDir: na.dataDir, flags });
  await isNow('live');
  await joinedNode(again, { name: 'after-1' });
  await page.getByText('invited after-1').waitFor();
});

test('what a page fetches by itself does not keep the console running', async () => {
  const na = await authority();
  let now = na.clock.now();
  await using visit = await visitConsole(browse, na, { now: () => now });
  const { page, console } = visit;
  now += 8 * HOUR;
  await page.evaluate("fetch('./nodes').then((answer) => answer.text())");
  assert.equal(await console.stopIfIdle(), true);
});
