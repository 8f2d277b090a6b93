/** The history on the dashboard, in Chromium: drawings, values under the pointer, and the same numbers as a table. */
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import type { Page } from 'playwright-core';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import {
  NARROW,
  startBrowser,
  type TestBrowser,
  type VisitOptions,
  WIDE,
} from './support/browser.ts';
import { HOUR, MINUTE, testClock } from './support/clock.ts';
import { heartbeat, joinedNode, operate, type TestNode } from './support/requests.ts';

suite('the history on the dashboard', { concurrency: false }, () => {
  // Visitors compare the times of the page with their own clock.
  const clock = testClock(Math.floor(Date.now() / HOUR - 5) * HOUR);
  let started: Promise<{ na: TestAuthority; browser: TestBrowser; node: TestNode }> | null = null;

  /** Five hours by quarters, with a gap before the fifth. */
  async function start() {
    const na = await startTestAuthority({ clock });
    const browser = await startBrowser();
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
    return { na, browser, node };
  }

  after(async () => {
    const { na, browser } = (await started) ?? {};
    await browser?.close();
    await na?.[Symbol.asyncDispose]();
  });

  async function visit(path: string, options: VisitOptions = {}) {
    started ??= start();
    const { na, browser } = await started;
    return browser.visit(`${na.url}${path}`, options);
  }

  function rowsOf(page: Page): Promise<string[][]> {
    return page
      .locator('#history-numbers tbody tr')
      .evaluateAll((rows) =>
        rows.map((row) => [...row.children].map(({ textContent }) => textContent ?? '')),
      );
  }

  for (const [theme, width, javaScript] of [
    ['light', NARROW, true],
    ['dark', NARROW, false],
    ['light', WIDE, false],
    ['dark', WIDE, true],
  ] as const) {
    const where = `${theme}, ${width} pixels wide, ${javaScript ? 'with' : 'without'} JavaScript`;
    test(`is drawn and readable: ${where}`, async () => {
      await using seen = await visit('/dashboard', { theme, width, javaScript });
      const { page } = seen;
      assert.equal(await seen.overflow(), 0);
      assert.deepEqual(seen.problems, []);
      if (javaScript) assert.deepEqual(await seen.violations(), []);
      assert.equal(await page.locator('.chart .plot').count(), 3);
      assert.ok((await page.locator('.chart').first().locator('.gap').count()) >= 2);
      assert.equal(await page.locator('.chart').first().locator('.mark').count(), 1);
      assert.match(await page.locator('.decisions').innerText(), /: policy activated$/);
      assert.match(
        await page.locator('.legend').first().innerText(),
        /Heartbeats a minute: [\d,]+, at most 15/,
      );
    });
  }

  test('the table has every number that is drawn, and a dash where nothing was recorded', async () => {
    await using seen = await visit('/dashboard');
    const rows = await rowsOf(seen.page);
    assert.ok(rows.length === 96 || rows.length === 97);
    const recorded = rows.filter((row) => row.at(-1) !== '0');
    assert.deepEqual(
      recorded.map((row) => row[1]),
      [0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].map(String),
    );
    assert.ok(rows.filter((row) => row.at(-1) === '0').every((row) => row[1] === '–'));
  });

  test('the time range is in the address', async () => {
    await using seen = await visit('/dashboard?range=7d');
    const { page } = seen;
    const current = page.locator('.ranges a[aria-current]');
    assert.equal(await current.innerText(), '7 days');
    assert.ok((await rowsOf(page)).length >= 168);
    await page.locator('.ranges a', { hasText: '1 hour' }).click();
    await page.waitForURL(/\?range=1h$/);
    assert.equal(await current.innerText(), '1 hour');
    await page.goto(`${new URL(page.url()).origin}/dashboard?range=eternity`);
    assert.equal(await current.innerText(), '24 hours');
  });

  test('the values at the pointer are those of the table', async () => {
    await using seen = await visit('/dashboard', { width: WIDE });
    const { page } = seen;
    const rows = await rowsOf(page);
    const step = rows.findIndex((row) => row[1] === '9');
    const plot = page.locator('.plot').nth(1);
    const { width = 0 } = (await plot.boundingBox()) ?? {};
    await plot.hover({ position: { x: ((step + 0.5) * width) / rows.length, y: 40 } });
    const captions = page.locator('.chart figcaption');
    const values = () =>
      captions.evaluateAll((all) => all.map((each) => each.getAttribute('data-values')));
    const [time, beats, active, ...more] = rows[step] ?? [];
    assert.deepEqual(await values(), [
      `${time}: ${beats} · ${active}`,
      `${time}: ${more.slice(0, 3).join(' · ')}`,
      `${time}: ${more.slice(3, 6).join(' · ')}`,
    ]);
    assert.equal(await page.locator('.cross').count(), 3);
    await page.locator('h1').hover();
    assert.deepEqual(await values(), [null, null, null]);
    assert.equal(await page.locator('.cross').count(), 0);
  });

  test('an open page shows the next minute, and the table stays open', async () => {
    await using seen = await visit('/dashboard?range=1h', { isApart: true });
    const { page } = seen;
    const { na, node } = (await started) ?? assert.fail('not started');
    await page.clock.install();
    await page.reload();
    await page.locator('#history summary').click();
    for (let beats = 0; beats < 33; beats += 1) await heartbeat(na, node);
    clock.advance(MINUTE);
    await na.recordHistory();
    clock.advance(10_000);
    await page.clock.fastForward(70_000);
    await page.locator('.legend', { hasText: 'at most 33' }).waitFor();
    assert.equal(await page.locator('#history details').getAttribute('open'), '');
  });
});
