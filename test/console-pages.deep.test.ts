/** Every page of `mesh-na console` in a browser, in both themes and widths. axe-core takes a second for each. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createContactBins } from '../src/authority/certificates/contact-counts.ts';
import type { Context } from '../src/console/context.ts';
import { CONTACTS } from '../src/console/pages/contacts.ts';
import { PAGES } from '../src/console/routes.ts';
import { assertSound, sharedBrowser } from './support/browser.ts';
import { visitConsole } from './support/console.ts';
import { joinedNode, operate } from './support/requests.ts';
import { sharedAuthority } from './support/shared-authority.ts';

const authority = sharedAuthority();
const browse = sharedBrowser();

test('every page is accessible and free of errors', async () => {
  const na = await authority();
  await joinedNode(na, { name: 'labeled', labels: { a: 'b' } });
  await operate(na, '/admin/invite', { count: 2, batch: 'b', name: 'n-{n}', labels: { a: 'b' } });
  await using visit = await visitConsole(browse, na);
  const { page, open } = visit;
  for (const { path, isInNavigation } of PAGES) {
    if (!isInNavigation) continue;
    await open(path);
    await assertSound(visit);
  }
  await open('/contacts?status=any&group=a');
  assert.ok((await page.locator('.cells rect').count()) > 0);
  await assertSound(visit);
  await open('/invites');
  await page.click('text=Create invites…');
  await page.locator('h1', { hasText: 'Create invites' }).waitFor();
  // A browser focuses the field when it first draws the page.
  await page.locator('[name="roles"]:focus').waitFor();
  await assertSound(visit);
  await page.click('text=Create…');
  await page.locator('h1', { hasText: 'Confirm' }).waitFor();
  await page.waitForLoadState();
  await assertSound(visit);
  await page.click('button:has-text("Create")');
  await page.locator('h1', { hasText: 'Done' }).waitFor();
  await page.waitForLoadState();
  await assertSound(visit);
});

test('last contacts of a large network are accessible in bins of any kind', async () => {
  const na = await authority();
  await using visit = await visitConsole(browse, na);
  const { page, open } = visit;
  for (const label of [null, 'rack']) {
    const bins = createContactBins(label, 0);
    for (let i = 0; i < 2400; i += 1) {
      const name = `${'long-name-of-a-node-'.repeat(2)}${1000 + (i % 600)}`;
      const labels = i % 7 === 0 ? [] : [`rack=${'r'.repeat(60)}${i % 150}`];
      const described = [{ name, labels }, { hostname: name, labels }, { labels }][i % 3];
      const isActive = i % 90 > 60;
      bins.add(
        { lastSeen: -(2 ** (i % 33)), isActive, remoteAddr: `10.0.0.${i % 250}` },
        described,
      );
    }
    const client = { countContacts: async () => bins.counted() };
    const query = new URLSearchParams(label === null ? {} : { group: label });
    const { body } = await CONTACTS.show({ client, now: () => 0 } as unknown as Context, query);
    const text = body.text.replaceAll('<details>', '<details open>');
    const form = /<form[^>]*class="ask".*?<\/form>/s;
    // The page may get itself again at any time, because it is live.
    await page.route('**/contacts', async (route) => {
      const response = await route.fetch();
      const given = (await response.text()).replace(form, () => text);
      await route.fulfill({ response, body: given });
    });
    await open('/contacts');
    assert.ok((await page.locator('.bars a').count()) > 100);
    await assertSound(visit);
    await page.unrouteAll({ behavior: 'wait' });
  }
});
