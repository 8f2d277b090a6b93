/** Drawn graphs in a browser: zooming and panning, and the neighborhood of a sovereign in large ones. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { MOST_DRAWN_NODES } from '../src/pages/graph/layout.ts';
import { MOST_NEIGHBORS, neighborhoodOf } from '../src/pages/graph/section.ts';
import type { Connectome, EdgeRow } from '../src/protocol/rows/graph.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { assertSound, NARROW, sharedBrowser, type Visit, WIDE } from './support/browser.ts';
import { connectomeOf, graphOf } from './support/connectome.ts';
import { get, newKey } from './support/requests.ts';
import { issued, recognize } from './support/trust.ts';

/** More names than fit into a narrow drawing. */
const NAMES = ['beta', 'gamma', 'delta', 'epsilon', 'omega', 'kappa', 'sigma'];

const open = sharedBrowser();
let na: TestAuthority;
before(async () => {
  na = await startTestAuthority();
  for (const name of NAMES) await recognized(na, 'alpha', name);
  await recognized(na, 'beta', 'gamma');
});
after(() => na?.[Symbol.asyncDispose]());

async function recognized(from: TestAuthority, issuer: string, subject: string): Promise<void> {
  const terms = {
    issuer_sovereign_id: issuer,
    subject_sovereign_id: subject,
    subject_public_keys: [newKey().publicKey],
    validity_hours: 400,
  };
  await issued(recognize(from, terms));
}

function inDrawing(page: Page, name: string) {
  return page.locator('.graph-picture .node', { hasText: name });
}

/** The center of a sovereign's dot, in screen pixels. */
async function placeOf(page: Page, name: string): Promise<{ x: number; y: number }> {
  const box = await inDrawing(page, name).locator('.dot').boundingBox();
  assert.ok(box);
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

async function boxOf(page: Page) {
  const box = await page.locator('.graph-box').boundingBox();
  assert.ok(box);
  return box;
}

async function distance(page: Page, a: string, b: string): Promise<number> {
  const [from, to] = [await placeOf(page, a), await placeOf(page, b)];
  return Math.hypot(to.x - from.x, to.y - from.y);
}

function zoomShown(page: Page): Promise<string> {
  return page.innerText('[data-zoom-shown]');
}

function viewOf(page: Page): Promise<string | null> {
  return page.locator('.scene').getAttribute('transform');
}

function scrolled(page: Page): Promise<number> {
  return page.evaluate('scrollY');
}

async function untilScrolledBeyond(page: Page, top: number): Promise<void> {
  while ((await scrolled(page)) <= top) await nextFrame(page);
}

async function nextFrame(page: Page): Promise<void> {
  await page.evaluate(
    'new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))',
  );
}

/** Also waits for the frame in which the page handles the wheel. */
async function wheel(page: Page, pixels: number): Promise<void> {
  await page.mouse.wheel(0, pixels);
  await nextFrame(page);
}

async function drawingOf(path: string, options = {}): Promise<Visit> {
  const visit = await open(na.url + path, options);
  await visit.page.locator('.graph-box').scrollIntoViewIfNeeded();
  return visit;
}

test('the wheel scrolls the page; with Ctrl it zooms in at the pointer', async () => {
  await using visit = await drawingOf('/atlas', { height: 700 });
  const { page } = visit;
  const [start, wide] = [await placeOf(page, 'beta'), await distance(page, 'alpha', 'beta')];
  await page.mouse.move(start.x, start.y);
  await wheel(page, 60);
  assert.equal(await zoomShown(page), '100%');
  assert.ok((await scrolled(page)) > 0);

  const at = await placeOf(page, 'beta');
  await page.mouse.move(at.x, at.y);
  const top = await scrolled(page);
  await page.keyboard.down('Control');
  await wheel(page, -60);
  await page.keyboard.up('Control');
  assert.equal(await scrolled(page), top);
  assert.ok((await distance(page, 'alpha', 'beta')) > 1.2 * wide);
  const { x, y } = await placeOf(page, 'beta');
  assert.ok(Math.hypot(x - at.x, y - at.y) < 2, 'what is under the pointer stays there');
});

test('the wheel zooms in a drawing that has the focus, until Escape gives it back', async () => {
  await using visit = await drawingOf('/atlas', { height: 700 });
  const { page } = visit;
  await page.locator('.graph-box').focus();
  await page.locator('.graph-box').hover();
  const top = await scrolled(page);
  await wheel(page, -100);
  assert.equal(await zoomShown(page), '132%');
  assert.equal(await scrolled(page), top);
  await page.keyboard.press('Escape');
  await wheel(page, -100);
  assert.equal(await zoomShown(page), '132%');
  assert.ok((await scrolled(page)) < top);
});

test('dragging moves the drawing, even if it begins on a sovereign, and a click still selects one', async () => {
  await using visit = await drawingOf('/atlas');
  const { page } = visit;
  for (let i = 0; i < 2; i += 1) await page.getByRole('button', { name: 'Zoom in' }).click();
  const from = await placeOf(page, 'alpha');
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(from.x + 30, from.y + 20, { steps: 4 });
  await page.mouse.up();
  const to = await placeOf(page, 'alpha');
  assert.ok(Math.abs(to.x - from.x - 30) < 2 && Math.abs(to.y - from.y - 20) < 2);
  assert.match(page.url(), /\/atlas$/);
  await page.mouse.click(to.x, to.y);
  await page.waitForURL(/\/atlas\?sovereign=alpha#selected$/);
  assert.deepEqual(visit.problems, []);
});

test('the click that ends a drag opens nothing, and one right after it does', async () => {
  await using visit = await drawingOf('/atlas');
  // In a single task, so that none of the page's timers runs in between.
  const opened = await visit.page.evaluate(`{
    const box = document.querySelector('.graph-box');
    box.setPointerCapture = () => undefined;
    const common = { bubbles: true, cancelable: true, pointerId: 1 };
    const point = (type, clientX, buttons) =>
      box.dispatchEvent(new PointerEvent(type, { ...common, clientX, buttons }));
    const press = (from, to) => {
      point('pointerdown', from, 1);
      if (to !== from) point('pointermove', to, 1);
      point('pointerup', to, 0);
      return box.dispatchEvent(new PointerEvent('click', common));
    };
    [press(100, 140), press(140, 140)];
  }`);
  assert.deepEqual(opened, [false, true]);
  assert.deepEqual(visit.problems, []);
});

test('buttons and keys zoom, move, and show all again; the page keeps keys that change nothing', async () => {
  await using visit = await drawingOf('/atlas', { height: 700 });
  const { page } = visit;
  const whole = await viewOf(page);
  await page.getByRole('button', { name: 'Zoom in' }).click();
  assert.equal(await zoomShown(page), '140%');
  await page.getByRole('button', { name: 'Zoom out' }).click();
  await page.getByRole('button', { name: 'Zoom out' }).click();
  assert.equal(await viewOf(page), whole);

  await page.locator('.graph-box').focus();
  const top = await scrolled(page);
  for (const key of ['+', '+', 'ArrowRight', 'ArrowDown']) await page.keyboard.press(key);
  const moved = await viewOf(page);
  for (const key of ['ArrowLeft', 'ArrowUp']) await page.keyboard.press(key);
  assert.notEqual(await viewOf(page), moved);
  assert.equal(await scrolled(page), top);
  await page.keyboard.press('0');
  assert.equal(await viewOf(page), whole);
  await page.keyboard.press('ArrowDown');
  await untilScrolledBeyond(page, top);
  assert.deepEqual(await visit.violations(), []);
});

test('a sovereign that is reached with Tab scrolls into view, and the page does not jump', async () => {
  await using visit = await drawingOf('/atlas', { height: 700 });
  const { page } = visit;
  await inDrawing(page, NAMES[0] ?? '').focus();
  for (let i = 0; i < 6; i += 1) await page.keyboard.press('+');
  await page.evaluate("document.querySelector('.graph-box').scrollIntoView({ block: 'center' })");
  const top = await scrolled(page);
  const box = await boxOf(page);
  for (const name of NAMES.toSorted().slice(1)) {
    await page.keyboard.press('Tab');
    const label = await page.evaluate("document.activeElement.querySelector('title')?.textContent");
    assert.match(String(label), new RegExp(`^${name}:`));
    const { x, y } = await placeOf(page, name);
    assert.ok(x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height, name);
    assert.equal(await scrolled(page), top, name);
  }
});

test('F shows the drawing full screen, where it is equally accessible, and Escape leaves it', async () => {
  await using visit = await drawingOf('/atlas');
  const { page } = visit;
  const button = page.locator('[data-key-of="f"]');
  await button.click();
  await page.getByRole('button', { name: 'Leave full screen' }).waitFor();
  const { width } = await boxOf(page);
  assert.ok(width > WIDE - 80, `${width} wide`);
  assert.deepEqual(await visit.violations(), []);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Full screen', exact: true }).waitFor();
  await page.keyboard.press('f');
  await page.getByRole('button', { name: 'Leave full screen' }).waitFor();
  await page.keyboard.press('F');
  await page.getByRole('button', { name: 'Full screen', exact: true }).waitFor();
  assert.deepEqual(visit.problems, []);
});

test('on a phone it opens readable around this authority; two fingers zoom, one scrolls the page or moves sideways', async () => {
  const options = { width: NARROW, height: 740, hasTouch: true };
  await using visit = await drawingOf('/atlas', options);
  const { page } = visit;
  const box = await boxOf(page);
  const own = await placeOf(page, 'alpha');
  assert.ok(own.x > box.x && own.x < box.x + box.width);
  const zoom = async () => Number.parseInt(await page.innerText('[data-zoom-shown]'), 10);
  assert.ok((await zoom()) > 100);
  for (const width of [NARROW - 8, NARROW]) {
    await page.setViewportSize({ width, height: 740 });
    await page.waitForFunction(`innerWidth === ${width}`);
    assert.ok((await zoom()) > 100, 'also after another size');
  }
  const before = await distance(page, 'alpha', 'beta');
  await drawFingers(
    page,
    [30, 40, 50, 60].map((apart) => [
      [-apart, 0],
      [apart, 0],
    ]),
  );
  const ratio = (await distance(page, 'alpha', 'beta')) / before;
  assert.ok(ratio > 1.8 && ratio < 2.2, `${ratio} times as large`);

  const view = await viewOf(page);
  await drawFingers(
    page,
    [0, -5, -10, -20, -30].map((by) => [[by, 0]]),
  );
  assert.notEqual(await viewOf(page), view);
  const [moved, top] = [await viewOf(page), await scrolled(page)];
  await drawFingers(
    page,
    [0, -10, -30, -60, -90].map((by) => [[0, by]]),
  );
  await untilScrolledBeyond(page, top + 60);
  assert.equal(await viewOf(page), moved);
  assert.equal(await visit.overflow(), 0);
  assert.deepEqual(visit.problems, []);
});

test('on a phone a path of trust opens with both of its ends in view', async () => {
  await using visit = await drawingOf('/atlas', { width: NARROW, height: 740 });
  const { page } = visit;
  for (const name of NAMES) {
    await page.goto(`${na.url}/atlas?from=alpha&to=${name}`);
    const box = await boxOf(page);
    for (const end of ['alpha', name]) {
      const { x, y } = await placeOf(page, end);
      assert.ok(x > box.x && x < box.x + box.width, `${end} of the path to ${name}: ${x}`);
      assert.ok(y > box.y && y < box.y + box.height, `${end} of the path to ${name}: ${y}`);
    }
  }
  assert.deepEqual(visit.problems, []);
});

/** Touches the drawing; each step has the positions of the fingers, relative to the center. */
async function drawFingers(
  page: Page,
  steps: readonly (readonly (readonly [x: number, y: number])[])[],
): Promise<void> {
  const { x, y, width, height } = await boxOf(page);
  const session = await page.context().newCDPSession(page);
  for (const [index, fingers] of steps.entries()) {
    await session.send('Input.dispatchTouchEvent', {
      type: index === 0 ? 'touchStart' : 'touchMove',
      touchPoints: fingers.map(([dx, dy], id) => ({
        x: x + width / 2 + dx,
        y: y + height / 2 + dy,
        id,
      })),
    });
  }
  await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
}

test('without scripts the whole drawing is there and scrolls sideways, without buttons', async () => {
  await using visit = await drawingOf('/atlas', { width: NARROW, javaScript: false });
  const { page } = visit;
  assert.equal(await page.locator('.graph-picture .node').count(), NAMES.length + 1);
  assert.equal(await page.locator('.graph-tools').isVisible(), false);
  assert.equal(await page.locator('.legend .needs-js').isVisible(), false);
  assert.equal(await page.locator('.scene').getAttribute('transform'), null);
  const widths = await page
    .locator('.graph-box')
    .evaluate((box) => [box.scrollWidth, box.clientWidth]);
  assert.ok(Number(widths[0]) > Number(widths[1]));
  assert.equal(await visit.overflow(), 0);
});

test('a zoomed-in drawing is accessible', async () => {
  await using visit = await drawingOf('/atlas');
  const { page } = visit;
  for (let i = 0; i < 4; i += 1) await page.getByRole('button', { name: 'Zoom in' }).click();
  await assertSound(visit);
  await page.setViewportSize({ width: 768, height: 900 });
  assert.equal(await visit.overflow(), 0);
});

// Graphs that are too large to be drawn whole: a selected sovereign is drawn with its direct neighbors.

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
