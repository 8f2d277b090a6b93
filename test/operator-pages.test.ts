/** The pages for operators of the network [service-read-endpoints]: `/dashboard`, `/connectome`, `/atlas`. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { withoutPause } from '../src/base/work.ts';
import { csvLine } from '../src/console/pages/nodes.ts';
import { fleetBar } from '../src/pages/dashboard/fleet-section.ts';
import { connectomePage } from '../src/pages/graph/connectome.ts';
import { layoutGraph } from '../src/pages/graph/layout.ts';
import {
  foundTreaties,
  parametersOf,
  treatiesInOrder,
  treatyQuery,
} from '../src/pages/graph/tables.ts';
import { nameInCell, reference } from '../src/pages/ui/values.ts';
import { TREATY_ORDERS } from '../src/protocol/api/pages.ts';
import type { Fleet } from '../src/protocol/rows/dashboard.ts';
import type { Connectome } from '../src/protocol/rows/graph.ts';
import { sharedAuthority, startTestAuthority, type TestAuthority } from './support/authority.ts';
import { assertSound, HOSTILE_NAME, NARROW, sharedBrowser, WIDE } from './support/browser.ts';
import { HOUR, REAL_TIME } from './support/clock.ts';
import { connectomeOf, graphOf } from './support/connectome.ts';
import { get, heartbeat, joinedNode, newKey, send } from './support/requests.ts';
import { importFeed, issued, recognize, revokeTreaty, sovereign } from './support/trust.ts';

const PAGES = ['/dashboard', '/connectome', '/atlas'] as const;

const visit = sharedBrowser();
const authority = sharedAuthority();
let filled: Promise<void> | null = null;

/** For tests that only read it. */
async function small(): Promise<TestAuthority> {
  const na = await authority();
  filled ??= fillSmall(na);
  await filled;
  return na;
}

async function treaty(na: TestAuthority, from: string, to: string, hours = 400, key = newKey()) {
  const terms = {
    issuer_sovereign_id: from,
    subject_sovereign_id: to,
    subject_public_keys: [key.publicKey],
    validity_hours: hours,
  };
  return issued(recognize(na, terms));
}

/** Adds treaties in every state, an imported feed, nodes and a trust cycle. */
async function fillSmall(na: TestAuthority): Promise<void> {
  const beta = sovereign('beta');
  await treaty(na, 'gamma', 'delta', 1);
  na.clock.advance(2 * HOUR);
  await treaty(na, 'alpha', 'beta', 400, beta.key);
  await treaty(na, 'beta', 'gamma', 60);
  await treaty(na, 'beta', 'alpha', 400);
  const ended = await treaty(na, 'alpha', 'delta');
  await revokeTreaty(na, ended.treaty_id, { reason: 'ended' });
  const old = await treaty(na, 'delta', 'beta');
  await revokeTreaty(na, old.treaty_id, { reason: 'replaced_by:another' });
  const feed = beta.feed(na.clock.now(), 1, { revoked_attestation_ids: ['attestation-of-beta'] });
  await issued(importFeed(na, feed));
  await heartbeat(na, await joinedNode(na));
  await na.runTrustCycle();
}

suite('the layout', () => {
  const radii = Array.from({ length: 40 }, (_, index) => 6 + (index % 5));
  const links = radii.map((_, index) => [index, (index * 7 + 1) % 40] as const);

  test('is the same for the same graph, and different for another', () => {
    const layout = (pairs: typeof links) => withoutPause(layoutGraph(radii, pairs));
    assert.deepEqual(layout(links), layout(links));
    assert.notDeepEqual(layout(links).positions, layout(links.slice(1)).positions);
  });

  test('keeps sovereigns inside the drawing and apart, whatever their number', () => {
    for (const count of [1, 2, 7, 40, 200]) {
      const { width, height, positions } = withoutPause(
        layoutGraph(
          Array.from({ length: count }, () => 6),
          Array.from({ length: count }, (_, index) => [index, (index * 3 + 1) % count] as const),
        ),
      );
      assert.equal(new Set(positions.map(({ x, y }) => `${x} ${y}`)).size, count);
      for (const { x, y } of positions) {
        assert.ok(x >= 40 && x <= width - 40 && y >= 40 && y <= height - 40, `${x} ${y}`);
      }
    }
  });

  test('does not move when only states change', () => {
    const before = connectomeOf(30, 60);
    const [first, ...others] = before.recognition_edges;
    assert.ok(first);
    const revoked = { ...first, status: 'revoked', lifecycle_state: 'revoked' } as const;
    const changed = { ...before, recognition_edges: [revoked, ...others] };
    const placesOf = (document: Connectome) =>
      graphOf(document).drawing?.nodes.map(({ x, y }) => [x, y]);
    assert.deepEqual(placesOf(before), placesOf(changed));
  });

  test('shows no overlapping names', () => {
    const { drawing } = graphOf(connectomeOf(200, 1000));
    const shown = drawing?.nodes.filter(({ label }) => label.isShown) ?? [];
    assert.ok(shown.length > 20, `${shown.length} names`);
    for (const [index, a] of shown.entries()) {
      for (const b of shown.slice(index + 1)) {
        const sameLine = Math.abs(a.label.y - b.label.y) < 10;
        const sameAnchor = a.label.anchor === b.label.anchor;
        assert.ok(!(sameLine && sameAnchor && Math.abs(a.label.x - b.label.x) < 40), a.name);
      }
    }
  });

  test('is drawn of up to 300 sovereigns with 1,500 treaties', () => {
    for (const [sovereigns, treaties, drawn] of [
      [300, 1500, true],
      [301, 400, false],
      [100, 1501, false],
      [0, 0, false],
    ] as const) {
      const { drawing } = graphOf(connectomeOf(sovereigns, treaties));
      assert.equal(drawing !== null, drawn, `${sovereigns} with ${treaties}`);
    }
  });
});

test('no part of the bar of the fleet is less than nothing wide, nor are all of them more than all', () => {
  for (let expected = 1; expected < 9; expected += 1) {
    for (let silent = 0; silent <= expected; silent += 1) {
      for (let healthy = 0; healthy + silent <= expected; healthy += 1) {
        const fleet = { expected, healthy, silent } as Fleet;
        const widths = [...fleetBar(fleet).text.matchAll(/ width="([^"]+)"/g)].map(([, width]) =>
          Number(width),
        );
        assert.ok(Math.min(...widths) >= 0, `${widths}`);
        const all = widths.reduce((sum, width) => sum + width, 0);
        assert.equal(all, 100, `${widths}`);
      }
    }
  }
});

suite('names', () => {
  test('characters that are not seen, or change the direction of text, are shown as their numbers', () => {
    for (const [name, shown] of [
      ['beta', 'beta'],
      ['a\u202Eb', 'a⟨U+202E⟩b'],
      ['zero\u200Bwidth', 'zero⟨U+200B⟩width'],
      ['line\nend', 'line⟨U+000A⟩end'],
      ['', '“”'],
      [' ', '“ ”'],
      ['שלום', 'שלום'],
    ] as const) {
      assert.equal(nameInCell(name), shown);
    }
  });

  test('long names are truncated, and a digest replaces them in addresses', () => {
    assert.equal([...nameInCell('n'.repeat(10_000))].length, 96);
    assert.equal([...nameInCell('😀'.repeat(97))].length, 96);
    assert.match(nameInCell(`first ${'n'.repeat(10_000)} last`), /^first n+…n+ last$/);
    assert.match(reference('n'.repeat(10_000)), /^sha256:[0-9a-f]{64}$/);
    assert.equal(reference('beta'), 'beta');
  });
});

suite('over HTTP', () => {
  test('pages may run only their own code, change with their contents, and are answered with 304', async () => {
    await using na = await startTestAuthority();
    const before = await Promise.all(PAGES.map((path) => get(na, path)));
    await treaty(na, 'alpha', 'beta');
    for (const [index, path] of PAGES.entries()) {
      const { status, headers, text } = await get(na, path);
      assert.equal(status, 200);
      assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
      const policy = headers.get('content-security-policy') ?? '';
      assert.match(policy, /default-src 'none'/);
      assert.doesNotMatch(policy, /unsafe|\*|https?:/);
      assert.doesNotMatch(text, / on[a-z]+=| style=/);
      assert.match(text, /beta/);
      const etag = headers.get('etag') ?? '';
      assert.notEqual(etag, before[index]?.headers.get('etag'));
      const again = await send(na, 'GET', path, { headers: { 'If-None-Match': etag } });
      assert.deepEqual([again.status, again.text], [304, '']);
    }
  });

  test('the atlas answers a question in its address', async () => {
    const na = await small();
    for (const [query, expected] of [
      ['?from=alpha', /Choose the second sovereign as well/],
      ['?from=alpha&to=gamma', /The shortest path takes 2 active treaties/],
      ['?from=alpha&to=delta', /direct_treaty_revoked/],
      ['?from=alpha&to=alpha', /Both are the same sovereign/],
      ['?from=alpha&to=nobody', /No treaty names nobody/],
      ['?from=delta&to=alpha', /No path of active treaties connects them/],
      ['?sovereign=beta', /#revoked-heading">1 attestation</],
      ['?sovereign=nobody', /No treaty names the sovereign/],
      ['?q=nobody', /No matching sovereign/],
      ['?q=GAM', /1 of 4 sovereigns/],
      ['?state=expired', /2 of 4 sovereigns/],
      ['?state=unheard', />4 sovereigns/],
      ['?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E', /value="&quot;&gt;&lt;script&gt;/],
    ] as const) {
      const { status, text } = await get(na, `/atlas${query}`);
      assert.equal(status, 200);
      assert.match(text, expected);
      assert.ok(!text.includes('<script>alert'));
    }
  });

  test('an empty network says what is missing instead of drawing nothing', async () => {
    await using na = await startTestAuthority();
    const { text } = await get(na, '/connectome');
    assert.match(text, /The graph is empty/);
    assert.ok(!text.includes('graph-picture'));
  });
});

suite('treaties of any number', () => {
  const edges = connectomeOf(40, 120).recognition_edges.map((edge, index) => ({
    ...edge,
    lifecycle_state: index % 3 === 0 ? ('expired' as const) : ('active' as const),
    valid_from: `2026-01-${String(1 + (index % 28)).padStart(2, '0')}T00:00:00Z`,
    expires_at: `2026-02-${String(28 - (index % 28)).padStart(2, '0')}T00:00:00Z`,
  }));
  const graph = graphOf({ ...connectomeOf(40, 120), recognition_edges: edges });
  const asked = (address: string) => {
    const { searchParams } = new URL(address, 'http://na');
    return treatyQuery(Object.fromEntries(searchParams));
  };

  const found = (address: string) => {
    const query = asked(address);
    const inOrder = withoutPause(treatiesInOrder(graph, query));
    return foundTreaties(graph, inOrder, query).map(({ row }) => row);
  };

  test('an address of a list means the same after it is parsed and written again', () => {
    for (const address of ['', '?q=a+%26+b&state=expired&sort=-ends&page=3&blast=2&material=4']) {
      assert.equal(parametersOf(asked(address)), address);
    }
    assert.equal(parametersOf(asked('?page=0&sort=unheard&state=-&blast=1e9&material=-1')), '');
  });

  test('in any order, in both directions, each treaty appears once', () => {
    const ids = (address: string) => found(address).map(({ treaty_id }) => treaty_id);
    for (const order of TREATY_ORDERS) {
      const [up, down] = [ids(`?sort=${order}`), ids(`?sort=-${order}`)];
      assert.deepEqual(up.toSorted(), down.toSorted());
      assert.equal(new Set(up).size, edges.length);
      assert.notDeepEqual(up, down);
    }
  });

  test('a filter covers names, ids and states', () => {
    const rows = found('?q=SOVEREIGN-0007&state=expired');
    assert.ok(rows.length > 0 && rows.length < edges.length);
    for (const { from, to, lifecycle_state } of rows) {
      assert.ok([from, to].includes('sovereign-0007'));
      assert.equal(lifecycle_state, 'expired');
    }
  });

  test('a spreadsheet reads names as text, whatever they begin with', () => {
    assert.equal(csvLine(['=1+1', 'a "b", c\nd']), `'=1+1,"a ""b"", c\nd"\r\n`);
  });

  test('2,000 treaties make a readable page, and can be paged through without scripts', async (t) => {
    await using na = await startTestAuthority();
    const key = newKey();
    const names = Array.from({ length: 60 }, (_, i) => `sovereign-${String(i).padStart(3, '0')}`);
    await Promise.all(names.map((name, i) => treaty(na, name, 'hub', 100 + i, key)));
    await using seen = await visit(`${na.url}/connectome?q=sovereign&sort=-ends`, {
      javaScript: false,
    });
    const { page } = seen;
    const firstOf = () => page.locator('#treaties tbody th').first().innerText();
    assert.equal(await page.locator('#treaties tbody tr').count(), 50);
    assert.equal(await firstOf(), 'sovereign-059');
    assert.equal(await page.locator('th[aria-sort="descending"]').innerText(), 'Until');
    await page.getByRole('navigation', { name: 'Pages of treaties' }).getByText('Next').click();
    await page.waitForURL(/\?q=sovereign&sort=-ends&page=2#treaties-heading$/);
    assert.equal(await firstOf(), 'sovereign-009');
    await page.getByRole('link', { name: 'Issuer', exact: true }).first().click();
    assert.equal(await firstOf(), 'sovereign-000');
    await page.fill('#q', 'sovereign-01');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.waitForURL(/\?q=sovereign-01&/);
    assert.equal(await page.locator('#treaties tbody tr').count(), 10);
    assert.deepEqual(seen.problems, []);

    const graph = graphOf(connectomeOf(400, 2000));
    const { document: large } = connectomePage(graph, 'version');
    t.diagnostic(`${large.bytes.byteLength} bytes for 2,000 treaties`);
    assert.ok(large.bytes.byteLength < 100_000, `${large.bytes.byteLength} bytes`);
    const shown = Buffer.from(large.bytes).toString();
    for (const text of ['>2,000<', '2,000 treaties', '1 to 50 of 2,000']) {
      assert.ok(shown.includes(text), text);
    }

    const { document: drawn } = connectomePage(graphOf(connectomeOf(200, 1000)), 'version');
    const nodes =
      Buffer.from(drawn.bytes)
        .toString()
        .match(/<a id="node-\d+"/g) ?? [];
    assert.equal(nodes.length, 200);
  });

  test('a page with an address of its own follows changes too', async () => {
    await using na = await startTestAuthority({ clock: REAL_TIME });
    await treaty(na, 'alpha', 'beta');
    await using seen = await visit(`${na.url}/connectome?q=b`, {
      isApart: true,
    });
    const { page } = seen;
    await page.locator('[data-live-status="live"]').waitFor();
    await page.clock.install();
    await treaty(na, 'alpha', 'bravo');
    const shown = page.locator('#treaties a', { hasText: 'bravo' });
    while ((await shown.count()) === 0) await page.clock.fastForward(1000);
    assert.equal(await page.locator('#treaties a', { hasText: 'alpha' }).count(), 2);
  });

  test('on a phone each treaty is a card that begins with its parties, its state and its end', async () => {
    const na = await small();
    await using seen = await visit(`${na.url}/connectome`, { width: NARROW });
    const { page } = seen;
    const card = page.locator('#treaties tbody tr').first();
    const tops = await card.evaluate((row) =>
      [...row.children].map((cell) => [
        cell.getAttribute('data-label'),
        cell.getBoundingClientRect().top,
      ]),
    );
    const order = tops.toSorted(([, a], [, b]) => Number(a) - Number(b)).map(([label]) => label);
    assert.deepEqual(order, ['Issuer', 'Subject', 'State', 'Until', 'From', 'Treaty']);
    const box = page.locator('#treaties').locator('..');
    assert.equal(await box.evaluate((each) => each.scrollWidth - each.clientWidth), 0);
  });

  test('a long name is shortened in the middle, an id can be copied, and a time is also relative', async () => {
    await using na = await startTestAuthority();
    const long = `first-${'n'.repeat(200)}-last`;
    const { treaty_id: id } = await treaty(na, 'alpha', long, 72);
    await using seen = await visit(`${na.url}/connectome`, { isApart: true });
    const { page } = seen;
    const link = page.locator('#treaties a', { hasText: 'first-' });
    assert.match(await link.innerText(), /^first-n+…n+-last$/);
    assert.equal(await link.getAttribute('title'), long);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: `Copy ${id}` }).click();
    await page.getByText('Copied', { exact: true }).waitFor({ state: 'attached' });
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), id);
    // Only its beginning and end are seen, but all of it is found and selected.
    const size = "getComputedStyle(document.querySelector('#treaties a i')).fontSize";
    assert.equal(await page.evaluate(size), '0px');
    assert.equal(await page.evaluate(`find('${id}') && String(getSelection())`), id);
    const relative = await page.locator('#treaties time').last().getAttribute('data-relative');
    assert.match(String(relative), /^in [23] days$/);
    assert.deepEqual(await seen.violations(), []);
    assert.deepEqual(seen.problems, []);
  });
});

suite('in a browser', () => {
  // `details-pages.deep` sees the empty ones, and `graph-view.deep` large ones.
  test('all pages are accessible, and hostile and endless names remain text and break nothing', async () => {
    await using na = await startTestAuthority();
    await fillSmall(na);
    const endless = 'W'.repeat(1024);
    const ofEndless = encodeURIComponent(reference(endless));
    await treaty(na, 'alpha', HOSTILE_NAME, 20);
    await treaty(na, HOSTILE_NAME, endless, 1);
    await treaty(na, endless, '"><img src=x onerror=window.hacked=1>');
    for (const path of [
      '/dashboard',
      '/connectome',
      `/atlas?sovereign=${ofEndless}`,
      '/atlas?sovereign=beta&from=alpha&to=gamma',
    ]) {
      await using seen = await visit(na.url + path);
      await assertSound(seen);
      const { page } = seen;
      assert.equal(await page.evaluate('window.hacked'), undefined);
      assert.equal(await page.locator('main img, main script').count(), 0);
      if (path.includes(ofEndless)) {
        assert.match(await page.innerText('#selected'), /Open its page/);
      }
    }
  });

  test('the dashboard shows posture, counts, what is urgent, changes, feeds and the trust cycle', async () => {
    const na = await small();
    await using seen = await visit(`${na.url}/dashboard`);
    const field = (name: string) => seen.page.innerText(`[data-stat="${name}"] strong`);
    assert.equal(await seen.page.innerText('#posture-word'), 'Needs attention');
    assert.equal(await field('nodes.active'), '1');
    assert.equal(await field('treaty_summary.warning_count'), '2');
    assert.equal(await field('fleet.healthy'), '1');
    assert.equal(await field('fleet.silent'), '0');
    assert.deepEqual(await seen.page.locator('#roles tbody tr').allInnerTexts(), [
      'role:client\t1\t1\t0\t0\t0',
    ]);
    assert.equal(await field('revocation_feed_summary.freshness'), 'Fresh');
    assert.equal(await field('trust_cycle_summary.status'), 'Verified');
    assert.equal(await seen.page.locator('#urgent-treaties tbody tr').count(), 2);
    assert.equal(await seen.page.locator('#recent-changes > li').count(), 8);
    assert.equal(await seen.page.locator('#revocation-feeds tbody tr').count(), 1);
    for (const width of [NARROW, 768, WIDE]) {
      await seen.page.setViewportSize({ width, height: 900 });
      const cards = seen.page.locator('.stats').first().locator('li');
      const widths = await cards.evaluateAll((each) =>
        each.map((card) => Math.round(card.getBoundingClientRect().width)),
      );
      assert.equal(new Set(widths).size, 1, `the digits have equal widths: ${widths} at ${width}`);
    }
  });

  test('the command about a finding can be copied, and breaks between options only', async () => {
    const na = await small();
    await using seen = await visit(`${na.url}/dashboard`, { width: NARROW });
    const { page } = seen;
    const commands = page.locator('#warnings li > code');
    assert.ok((await commands.count()) > 0);
    for (const command of await commands.all()) {
      const text = await command.innerText();
      assert.match(text, /^mesh-na /);
      assert.equal(await command.getByRole('button').getAttribute('aria-label'), `Copy ${text}`);
    }
    const wrapping = "getComputedStyle(document.querySelector('#warnings code')).whiteSpace";
    assert.equal(await page.evaluate(wrapping), 'nowrap');
    await page.goto(`${na.url}/trust?from=alpha&to=beta`);
    await page.locator('.posture code').waitFor();
    assert.equal(await page.locator('.posture code button').count(), 0, 'a reason is no command');
    assert.deepEqual(seen.problems, []);
  });

  test('sovereigns of the drawing can be reached by keyboard, and link to their treaties', async () => {
    const na = await small();
    await using seen = await visit(`${na.url}/connectome`);
    const { page } = seen;
    const beta = page.locator('.node', { hasText: 'beta' });
    assert.match(
      (await beta.locator('title').textContent()) ?? '',
      /^beta: recognizes by 2 treaties/,
    );
    await page.locator('.graph .skip').focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    assert.equal(
      await page.evaluate("document.activeElement.closest('.graph-box')"),
      null,
      'a reader of the tables need not go through the drawing',
    );
    await beta.focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/atlas\?sovereign=beta#selected$/);
    await beta.focus();
    assert.match(
      (await page.locator('.node', { hasText: 'delta' }).getAttribute('class')) ?? '',
      /hot/,
    );
    assert.equal(await page.innerText('#selected h2'), 'beta');
    for (const [part, heading] of [
      ['out', 'Whom it recognizes'],
      ['in', 'Who recognizes it'],
    ] as const) {
      await page
        .locator(`#selected a[href$="#${part}-heading"]`, { hasText: '2 treaties' })
        .click();
      await page.getByRole('heading', { name: heading }).waitFor();
      assert.equal(await page.locator(`#${part} tbody tr`).count(), 2);
      await page.goBack();
    }
  });

  test('on a phone a graph opens as a whole if all of its names fit', async () => {
    const na = await small();
    await using seen = await visit(`${na.url}/atlas`, { width: NARROW });
    const { page } = seen;
    assert.equal(await page.innerText('[data-zoom-shown]'), '100%');
    const box = await page.locator('.graph-picture').boundingBox();
    for (const name of await page.locator('.node text').all()) {
      const { x = 0, width = 0, height = 0 } = (await name.boundingBox()) ?? {};
      assert.ok(height > 11, `a name is ${height} pixels high`);
      assert.ok(x >= (box?.x ?? 0) && x + width <= (box?.x ?? 0) + (box?.width ?? 0));
    }
  });

  for (const javaScript of [true, false]) {
    test(`the atlas is searched and explains a path ${javaScript ? 'with' : 'without'} scripts`, async () => {
      const na = await small();
      await using seen = await visit(`${na.url}/atlas`, { javaScript });
      const { page } = seen;
      await page.fill('#q', 'GAM');
      if (!javaScript) await page.click('text=Find >> nth=0');
      assert.deepEqual(await page.locator('#sovereigns tbody tr:visible th a').allInnerTexts(), [
        'gamma',
      ]);
      assert.equal(await page.innerText('#found'), '1 of 4 sovereigns.');
      await page.fill('#from', 'alpha');
      await page.fill('#to', 'gamma');
      await page.click('text=Show the path');
      await page.waitForURL(/from=alpha&to=gamma/);
      assert.match(await page.innerText('#path-result'), /^Trusted active_treaty_path/);
      assert.equal(await page.locator('.link.lit').count(), 2);
      assert.deepEqual(seen.problems, []);
    });
  }
});
