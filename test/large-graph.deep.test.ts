/** Graphs that are too large to be drawn whole: a selected sovereign is drawn with its direct neighbors. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { MOST_DRAWN_NODES } from '../src/pages/graph/layout.ts';
import { MOST_NEIGHBORS, neighborhoodOf } from '../src/pages/graph/section.ts';
import type { Connectome, EdgeRow } from '../src/protocol/rows/graph.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { assertSound, NARROW, sharedBrowser, type Visit } from './support/browser.ts';
import { connectomeOf, graphOf } from './support/connectome.ts';
import { get, newKey } from './support/requests.ts';
import { issued, recognize } from './support/trust.ts';

suite('the neighborhood of a sovereign', () => {
  /** A hub that recognizes `count` others, the first `expired` of them only by an expired treaty. */
  function hub(count: number, expired: number): Connectome {
    const whole = connectomeOf(count + 1, count);
    const edges = Array.from(
      { length: count },
      (_, index): EdgeRow => ({
        ...(whole.recognition_edges[index] as EdgeRow),
        from: 'sovereign-0000',
        to: whole.sovereigns[index + 1]?.sovereign_id ?? '',
        lifecycle_state: index < expired ? 'expired' : 'active',
      }),
    );
    return { ...whole, recognition_edges: edges };
  }

  function around(document: Connectome, name = 'sovereign-0000') {
    const model = graphOf(document);
    const center = model.node(name);
    assert.ok(center);
    return { model, center, ...neighborhoodOf(center) };
  }

  test('has all sovereigns that it is linked with, and all links among them', () => {
    const { model, center, drawing, drawn, all } = around(connectomeOf(400, 2000));
    const linked = new Set(
      model.links
        .filter(({ from, to }) => from === center || to === center)
        .flatMap(({ from, to }) => [from, to]),
    );
    assert.deepEqual(new Set(drawing.nodes.map(({ node }) => node)), linked);
    assert.deepEqual([drawn, all], [linked.size - 1, linked.size - 1]);
    const among = model.links.filter(({ from, to }) => linked.has(from) && linked.has(to));
    assert.deepEqual(new Set(drawing.links.map(({ link }) => link)), new Set(among));
  });

  test('shows those with treaties in force if there are many', () => {
    const { drawing, drawn, all } = around(hub(500, 480));
    assert.deepEqual([drawn, all], [MOST_NEIGHBORS, 500]);
    const names = new Set(drawing.nodes.map(({ node }) => node.id));
    for (let index = 481; index <= 500; index += 1) assert.ok(names.has(`sovereign-0${index}`));
  });

  for (const count of [0, 1, 2, 3, 7, MOST_NEIGHBORS]) {
    test(`${count} around it are inside the drawing, and no names overlap`, () => {
      const document = hub(Math.max(1, count), 0);
      const { drawing } = around(document, count === 0 ? 'sovereign-0001' : 'sovereign-0000');
      for (const { x, y, label, name } of drawing.nodes) {
        assert.ok(x > 0 && x < drawing.width && y > 20 && y < drawing.height - 20, name);
        const side = label.anchor === 'start' ? drawing.width - label.x : label.x;
        assert.ok(label.anchor === 'middle' || side > 200, `${name} has ${side}`);
      }
      for (const anchor of ['start', 'end']) {
        const rows = drawing.nodes.filter(({ label }) => label.anchor === anchor);
        const heights = rows.map(({ label }) => label.y).sort((a, b) => a - b);
        for (const [index, y] of heights.slice(1).entries()) {
          assert.ok(y - (heights[index] ?? 0) > 20);
        }
      }
    });
  }

  test('leaves the full drawing as it was', () => {
    const model = graphOf(connectomeOf(40, 120));
    const center = model.node('sovereign-0003');
    assert.ok(center);
    neighborhoodOf(center);
    const again = graphOf(connectomeOf(40, 120));
    assert.deepEqual(
      model.drawing?.nodes.map(({ x, y }) => [x, y]),
      again.drawing?.nodes.map(({ x, y }) => [x, y]),
    );
  });
});

suite('in a browser', () => {
  const LEAVES = MOST_DRAWN_NODES + 2;
  const nameOf = (index: number) => `leaf-${String(index).padStart(3, '0')}`;
  const visit = sharedBrowser();
  const key = newKey().publicKey;
  let na: TestAuthority;

  before(async () => {
    na = await startTestAuthority();
    for (let index = 0; index < LEAVES; index += 1) await treaty(na, 'hub', nameOf(index));
    await treaty(na, nameOf(7), nameOf(8));
    await treaty(na, nameOf(8), nameOf(7));
  });
  after(() => na?.[Symbol.asyncDispose]());

  function treaty(of: TestAuthority, from: string, to: string) {
    const sovereigns = { issuer_sovereign_id: from, subject_sovereign_id: to };
    const terms = { ...sovereigns, subject_public_keys: [key], validity_hours: 400 };
    return issued(recognize(of, terms));
  }

  function drawnNames({ page }: Visit): Promise<string[]> {
    return page.locator('.graph-picture .node text').allTextContents();
  }

  test('without scripts it is found by a search, selected from the list, and drawn with its neighbors', async () => {
    await using seen = await visit(`${na.url}/atlas`, { javaScript: false });
    const { page } = seen;
    // This authority has no treaties, so another sovereign is drawn until one is selected.
    assert.match(await page.innerText('p:has(+ .graph)'), /^hub and .* too large to draw legibly/);
    assert.equal(await page.locator('.graph-picture .node.selected text').textContent(), 'hub');
    await page.fill('#q', 'leaf-007');
    await page.click('text=Find >> nth=0');
    assert.equal(await page.innerText('#found'), `1 of ${LEAVES + 1} sovereigns.`);
    await page.click('#sovereigns tbody a');
    await page.waitForURL(/sovereign=leaf-007#selected$/);
    assert.deepEqual((await drawnNames(seen)).toSorted(), ['hub', 'leaf-007', 'leaf-008']);
    assert.equal(
      await page.locator('.graph-picture .node.selected text').textContent(),
      'leaf-007',
    );
    assert.equal(await page.locator('.graph-picture .links .link').count(), 4);
    await page.locator('.graph-picture .node', { hasText: 'leaf-008' }).locator('.dot').click();
    await page.waitForURL(/sovereign=leaf-008#selected$/);
    assert.deepEqual(seen.problems, []);
  });

  test('the Connectome gets a drawing with its style when a smaller state was restored', async () => {
    await using small = await startTestAuthority();
    await recognize(small);
    await using seen = await visit(`${na.url}/`, { isApart: true });
    const { page } = seen;
    let announce: () => void = () => undefined;
    await page.routeWebSocket(/live/, (socket) => {
      announce = () => socket.send(JSON.stringify({ version: 'restored', spread_ms: 1 }));
    });
    await page.goto(`${na.url}/connectome`);
    assert.match(await page.innerText('.notice'), /too large to draw legibly/);
    await page.locator('[data-live-status="live"]').waitFor({ state: 'attached' });
    await page.route('**/connectome', (route) =>
      route.continue({ url: `${small.url}/connectome` }),
    );
    announce();
    await page.locator('.graph-picture').waitFor();
    const display = "getComputedStyle(document.querySelector('.graph-picture')).display";
    assert.equal(await page.evaluate(display), 'block');
  });

  test('of too many neighbors only some are drawn, and a sentence says where the others are', async () => {
    await using seen = await visit(`${na.url}/atlas?sovereign=hub`);
    const { page } = seen;
    assert.equal((await drawnNames(seen)).length, MOST_NEIGHBORS + 1);
    const left = LEAVES - MOST_NEIGHBORS;
    await page.getByText(`hub and ${MOST_NEIGHBORS} of the ${LEAVES} sovereigns`).waitFor();
    await page.getByText(`the other ${left} are in the tables on its own page`).waitFor();
    await page.locator('p:has(+ .graph)').getByRole('link').first().click();
    await page.waitForURL(/\/sovereign\?id=hub$/);
    assert.match(await page.innerText('#out-caption'), new RegExp(`^${LEAVES} treaties`));
    assert.match(await page.innerText('.pager'), new RegExp(`of ${LEAVES}`));
    assert.deepEqual(seen.problems, []);
  });

  test('every sentence about the others links to them', async () => {
    for (const [path, caption] of [
      ['/connectome?q=leaf-007', /^3 of 304 treaties/],
      ['/connectome', /^304 treaties/],
    ] as const) {
      await using seen = await visit(na.url + path);
      const { page } = seen;
      const links = page.locator('.notice a');
      assert.deepEqual(await links.allTextContents(), ['listed below', 'atlas']);
      await links.first().click();
      await page.waitForURL(`${na.url}${path}#treaties-heading`);
      assert.match(await page.innerText('#treaties-caption'), caption);
      await links.last().click();
      await page.waitForURL(`${na.url}/atlas`);
      await page.locator('.graph-picture').waitFor();
    }
    for (const path of ['/atlas?q=leaf-007', '/atlas']) {
      await using seen = await visit(na.url + path);
      const { page } = seen;
      const links = page.locator('p:has(+ .graph) a');
      assert.deepEqual(await links.allTextContents(), ['its own page', 'below']);
      await links.last().click();
      await page.waitForURL(`${na.url}${path}#list-heading`);
      const shown = path === '/atlas' ? 100 : 1;
      assert.equal(await page.locator('#sovereigns tbody tr').count(), shown);
      await links.first().click();
      await page.waitForURL(`${na.url}/sovereign?id=hub`);
    }
    await using chosen = await visit(`${na.url}/atlas?sovereign=hub`);
    await chosen.page.locator('#selected a', { hasText: '302 treaties' }).click();
    await chosen.page.waitForURL(/\/sovereign\?id=hub#out-heading$/);
  });

  test('a list that does not have all sovereigns is searched only by the form', async () => {
    await using seen = await visit(`${na.url}/atlas?q=leaf-00`);
    const { page } = seen;
    assert.equal(await page.innerText('#found'), `10 of ${LEAVES + 1} sovereigns.`);
    await page.fill('#q', 'hub');
    assert.equal(await page.innerText('#found'), `10 of ${LEAVES + 1} sovereigns.`);
    assert.equal(await page.locator('#sovereigns tbody tr:visible').count(), 10);
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=hub/);
    assert.equal(await page.innerText('#found'), `1 of ${LEAVES + 1} sovereigns.`);
  });

  test('an unknown name draws nothing', async () => {
    const { text } = await get(na, '/atlas?sovereign=nobody');
    assert.match(text, /No treaty names the sovereign/);
    assert.ok(!text.includes('<figure class="graph'));
  });

  test('a neighborhood is accessible', async () => {
    await using seen = await visit(`${na.url}/atlas?sovereign=hub`);
    await assertSound(seen);
    await seen.page.setViewportSize({ width: 768, height: 900 });
    assert.equal(await seen.overflow(), 0);
  });

  test('200 sovereigns with 1,000 treaties are drawn, listed and accessible', async () => {
    await using large = await startTestAuthority();
    const edges = connectomeOf(200, 1000).recognition_edges;
    // Together, so that they share commits.
    for (let at = 0; at < edges.length; at += 50) {
      await Promise.all(edges.slice(at, at + 50).map(({ from, to }) => treaty(large, from, to)));
    }
    for (const [path, rows] of [
      ['/dashboard', null],
      ['/connectome', 50],
      ['/atlas', 100],
    ] as const) {
      await using seen = await visit(large.url + path, { width: NARROW });
      assert.equal(await seen.overflow(), 0, path);
      if (path === '/connectome') await assertSound(seen);
      assert.deepEqual(seen.problems, [], path);
      if (rows === null) continue;
      assert.equal(await seen.page.locator('.graph-picture .node').count(), 200);
      assert.equal(await seen.page.locator('main tbody tr').count(), rows);
    }
  });
});
