/** Every page of `mesh-na console` in a browser, in both themes and widths, and through linked instances. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { createContactBins } from '../src/authority/certificates/contact-counts.ts';
import type { Context } from '../src/console/context.ts';
import { CONTACTS } from '../src/console/pages/contacts.ts';
import { PAGES } from '../src/console/routes.ts';
import { sharedAuthority } from './support/authority.ts';
import { assertSound, sharedBrowser } from './support/browser.ts';
import type { ChildServer } from './support/child-server.ts';
import { visitConsole } from './support/console.ts';
import { placeOf, testInstances } from './support/instances.ts';
import { startCluster } from './support/postgresql.ts';
import { get, joinedNode, operate, type TestNode } from './support/requests.ts';
import { until } from './support/until.ts';

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

// `mesh-na console` in Chromium, through the active instance and through a standby of three linked instances.

const LINKED = { MESH_LINK: '127.0.0.1:0' };

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

test('every page and a revocation work through the active instance and a standby, and while the active instance changes', async () => {
  await using instances = await testInstances(cluster);
  const first = await instances.start(LINKED);
  const [second, third] = await Promise.all([instances.start(LINKED), instances.start(LINKED)]);
  const all = [first, second, third];
  await until(async () => (await Promise.all(all.map(placeOf))).every(({ ready }) => ready));
  const ids = await Promise.all(all.map(idOf));
  const describedNode = await joinedNode(first.na, { name: 'seen-1', labels: { rack: 'r1' } });

  for (const { na } of [first, second]) {
    await using visit = await visitConsole(browse, na);
    const { page, open } = visit;
    for (const path of pathsFor(describedNode)) {
      const answer = await open(path);
      assert.equal(answer?.status(), 200, path);
      assert.equal(await page.locator('[role="alert"]').count(), 0, path);
    }
    await open('/health');
    for (const id of ids)
      assert.equal(await page.locator('#instances th', { hasText: id }).count(), 1);
    assert.deepEqual(
      (await page.locator('#instances tbody tr').allInnerTexts()).map((row) => /active/i.test(row)),
      [true, false, false],
    );
    assert.deepEqual(visit.problems, []);

    const node = await joinedNode(third.na);
    await propose(page, node);
    await confirmed(page);
    await assertRevokedOnce(page, node, all);
  }

  await using visit = await visitConsole(browse, second.na);
  const { page } = visit;
  const stopped = await joinedNode(third.na);
  await propose(page, stopped);
  await first.end('SIGTERM');
  await confirmed(page);
  await assertRevokedOnce(page, stopped, [second, third]);

  const fourth = await instances.start(LINKED);
  const left = [second, third, fourth];
  await until(async () => (await Promise.all(left.map(placeOf))).every(({ ready }) => ready));
  const roles = await Promise.all(left.map(placeOf));
  const active = left[roles.findIndex(({ role }) => role === 'active')] as ChildServer;
  const standby = left[roles.findIndex(({ role }) => role === 'standby')] as ChildServer;
  await using later = await visitConsole(browse, standby.na);
  const killed = await joinedNode(standby.na);
  await propose(later.page, killed);
  await active.end('SIGKILL');
  await confirmed(later.page);
  await assertRevokedOnce(
    later.page,
    killed,
    left.filter((each) => each !== active),
  );
});

function pathsFor({ key }: TestNode): string[] {
  return [
    ...PAGES.filter(({ isInNavigation }) => isInNavigation).map(({ path }) => path),
    '/contacts?group=rack',
    `/node?${new URLSearchParams({ key: key.publicKey })}`,
  ];
}

async function idOf({ na }: ChildServer): Promise<string> {
  return (await get(na, '/readyz')).body.instance;
}

/** Opens the page that shows what will be signed. */
async function propose(page: Page, { key }: TestNode): Promise<void> {
  const fields = new URLSearchParams({
    action: 'revoke-node',
    node_public_key: key.publicKey,
  });
  await page.goto(new URL(`./do?${fields}`, page.url()).href);
  await page.click('button:has-text("Revoke the node…")');
  await heading(page, /Confirm/);
}

/** Confirms, and tries again while no instance writes, as the page offers. */
async function confirmed(page: Page): Promise<void> {
  await page.fill('#number', await page.innerText('form.confirm bdi'));
  await page.click('form.confirm button');
  for (;;) {
    const shown = await heading(page, /^\s*(Done|Not done)/);
    if (!shown.includes('Not done')) return;
    await page.click('button:has-text("Try again")');
    await page.waitForLoadState();
  }
}

async function heading(page: Page, wanted: RegExp): Promise<string> {
  const found = page.locator('h1', { hasText: wanted });
  await found.waitFor();
  await page.waitForLoadState();
  return found.innerText();
}

async function assertRevokedOnce(
  page: Page,
  { certId }: TestNode,
  servers: readonly ChildServer[],
): Promise<void> {
  const outcome = await page.innerText('main');
  assert.ok(outcome.includes('certificate_revoked') && outcome.includes(certId));
  for (const { na } of servers) assert.ok((await get(na, '/crl')).text.includes(certId));
  const query = new URLSearchParams({ type: 'certificate_revoked', q: certId });
  await page.goto(new URL(`./audit?${query}`, page.url()).href);
  assert.match(await page.innerText('main'), /: 1 found/);
}
