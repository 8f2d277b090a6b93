/** The history on the dashboard, in Chromium: drawings, values at the pointer, and the same numbers as a table. */
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { assertSound, NARROW, sharedBrowser, type VisitOptions } from './support/browser.ts';
import { HOUR, MINUTE, testClock } from './support/clock.ts';
import { heartbeat, joinedNode, operate, type TestNode } from './support/requests.ts';

suite('the history on the dashboard', { concurrency: false }, () => {
  // The page compares its times with the browser's own clock.
  const clock = testClock(Math.floor(Date.now() / HOUR - 5) * HOUR);
  const open = sharedBrowser();
  let started: Promise<{ na: TestAuthority; node: TestNode }> | null = null;

  /** Records five hours by quarters, with a gap of an hour before the fifth quarter. */
  async function start() {
    const na = await startTestAuthority({ clock });
    const node = await joinedNode(na);
    for (let quarter = 0; quarter < 16; quarter += 1) {
      if (quarter === 4) {
        clock.advance(HOUR);
        await na.recordHistory();
      }
      for (let beats = 0; beats < quarter; beats += 1) await heartbeat(na, node);
      if (quarter === 8) await operate(na, '/admin/policy', {});
      clock.advance(15 * MINUTE);
      await na.recordHistory();
    }
    return { na, node };
  }

  after(async () => (await started)?.na[Symbol.asyncDispose]());

  async function visit(path: string, options: VisitOptions = {}) {
    started ??= start();
    return open((await started).na.url + path, options);
  }

  function rowsOf(page: Page): Promise<string[][]> {
    return page
      .locator('#history-numbers tbody tr')
      .evaluateAll((rows) =>
        rows.map((row) => [...row.children].map(({ textContent }) => textContent ?? '')),
      );
  }

  test('is drawn and readable, also without JavaScript', async () => {
    for (const javaScript of [true, false]) {
      await using seen = await visit('/dashboard?range=24h', { javaScript });
      const { page } = seen;
      if (javaScript) await assertSound(seen);
      assert.equal(await seen.overflow(), 0);
      assert.equal(await page.locator('.chart .plot').count(), 5);
      assert.ok((await page.locator('.chart').first().locator('.gap').count()) >= 2);
      assert.equal(await page.locator('.chart').first().locator('.mark').count(), 1);
      assert.match(await page.locator('.decisions').innerText(), /: policy activated$/);
      assert.match(
        await page.locator('.legend').first().innerText(),
        /Heartbeats a minute: [\d,]+, at most 15/,
      );
      await page.setViewportSize({ width: NARROW, height: 900 });
      assert.equal(await seen.overflow(), 0);
      assert.deepEqual(seen.problems, []);
    }
  });

  test('the table has every number that is drawn, and a dash where nothing was recorded', async () => {
    await using seen = await visit('/dashboard?range=24h', { javaScript: false });
    assert.deepEqual(await rowsOf(seen.page), []);
    await seen.page.getByRole('link', { name: 'Numbers of the last 24 hours' }).click();
    await seen.page.waitForURL(/\?range=24h&numbers=shown#history-numbers$/);
    assert.equal(await seen.overflow(), 0);
    const rows = await rowsOf(seen.page);
    assert.ok(rows.length === 96 || rows.length === 97);
    const recorded = rows.filter((row) => row.at(-1) !== '0');
    assert.deepEqual(
      recorded.map((row) => row[1]),
      [0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].map(String),
    );
    assert.ok(rows.filter((row) => row.at(-1) === '0').every((row) => row[1] === '–'));
  });

  test('without a range, each drawing begins with what was recorded first, and says its scale', async () => {
    await using seen = await visit('/dashboard', { javaScript: false });
    const { page } = seen;
    const charts = page.locator('.chart');
    const scales = await charts.locator('.scale').allInnerTexts();
    assert.deepEqual(scales.length, 5);
    for (const scale of scales) assert.match(scale, /^[\d,.]+\s+0$/);
    assert.match(await charts.last().innerText(), /95th percentile \(ms\)/);
    const [, , steps] = (await page.getAttribute('.plot >> nth=0', 'viewBox'))?.split(' ') ?? [];
    assert.ok(Number(steps) < 96, `${steps} steps`);
    await page.getByRole('link', { name: 'Numbers of the last 24 hours' }).click();
    const rows = await rowsOf(page);
    assert.equal(rows.length, Number(steps));
    assert.notEqual(rows[0]?.at(-1), '0');
  });

  test('the time range is in the address', async () => {
    await using seen = await visit('/dashboard?range=7d');
    const { page } = seen;
    const current = page.locator('.ranges a[aria-current]');
    assert.equal(await current.innerText(), '7 days');
    assert.match(
      (await page.locator('.plot').first().getAttribute('viewBox')) ?? '',
      /^0 0 16[89] /,
    );
    await page.locator('.ranges a', { hasText: '1 hour' }).click();
    await page.waitForURL(/\?range=1h$/);
    assert.equal(await current.innerText(), '1 hour');
    await page.goto(`${new URL(page.url()).origin}/dashboard?range=eternity`);
    assert.equal(await current.innerText(), '24 hours');
  });

  test('the values at the pointer are those of the table', async () => {
    await using seen = await visit('/dashboard?numbers=shown');
    const { page } = seen;
    assert.deepEqual(await seen.violations(), []);
    const rows = await rowsOf(page);
    await page.goto(page.url().replace('?numbers=shown', ''));
    const step = rows.findIndex((row) => row[1] === '9');
    const plot = page.locator('.plot').nth(1);
    const { width = 0 } = (await plot.boundingBox()) ?? {};
    await plot.hover({ position: { x: ((step + 0.5) * width) / rows.length, y: 40 } });
    const place = page.locator('#history[style]');
    await place.waitFor();
    const curves = page.locator('.charts .legend li');
    const [time, ...values] = rows[step] ?? [];
    assert.deepEqual(
      await curves.evaluateAll((all) => all.map((each) => each.getAttribute('data-value'))),
      values.slice(0, -1),
    );
    assert.ok((await place.getAttribute('style'))?.endsWith(`--time: "${time}";`));
    await page.locator('h1').hover();
    assert.equal(await place.count(), 0);
    assert.deepEqual(seen.problems, []);
  });

  test('an open page shows the next minute', async () => {
    await using seen = await visit('/dashboard?range=1h', { isApart: true });
    const { page } = seen;
    const { na, node } = (await started) ?? assert.fail('not started');
    await page.clock.install();
    await page.reload();
    for (let beats = 0; beats < 33; beats += 1) await heartbeat(na, node);
    clock.advance(MINUTE);
    await na.recordHistory();
    clock.advance(10_000);
    await page.clock.fastForward(70_000);
    await page.locator('.legend', { hasText: 'at most 33' }).waitFor();
  });
});
