/** `mesh-na console` in Chromium, through the active instance and through a standby of three linked instances. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Page } from 'playwright-core';
import { PAGES } from '../src/console/routes.ts';
import { sharedBrowser } from './support/browser.ts';
import type { ChildServer } from './support/child-server.ts';
import { visitConsole } from './support/console.ts';
import { placeOf, testInstances } from './support/instances.ts';
import { startCluster } from './support/postgresql.ts';
import { get, joinedNode, type TestNode } from './support/requests.ts';
import { until } from './support/until.ts';

const LINKED = { MESH_LINK: '127.0.0.1:0' };

const cluster = await startCluster();
after(() => cluster[Symbol.asyncDispose]());

const browse = sharedBrowser();

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
