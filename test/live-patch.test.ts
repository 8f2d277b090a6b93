/** Live updates as patches: applying them gives the page that the server would send. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildSync } from 'esbuild';
import fc from 'fast-check';
import type { Page } from 'playwright-core';
import { type Html, html, keyed, NO_HTML } from '../src/pages/html.ts';
import { type Operation, patchBetween } from '../src/pages/live-patch.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { startBrowser, type TestBrowser, type Visit } from './support/browser.ts';
import { PROJECT_PATH } from './support/project.ts';

let na: TestAuthority;
let browser: TestBrowser;
let visit: Visit;
before(async () => {
  na = await startTestAuthority();
  browser = await startBrowser();
  visit = await browser.visit(`${na.url}/`);
  await visit.page.evaluate(patching());
});
after(async () => {
  await browser?.close();
  await na?.[Symbol.asyncDispose]();
});

/** The code that browsers run, as a global. */
function patching(): string {
  const [bundle] = buildSync({
    entryPoints: [join(PROJECT_PATH, 'src', 'pages', 'browser', 'patch.ts')],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'patching',
  }).outputFiles;
  // Variables of an evaluated script are local to it.
  return `${bundle?.text}; globalThis.patching = patching;`;
}

interface Item {
  readonly key: number;
  readonly word: string;
  readonly tone: string;
}

interface Content {
  readonly items: readonly Item[];
  readonly count: number;
  readonly isDrawn: boolean;
  readonly note: string | null;
}

const word = fc.constantFrom('active', '<b>', '"revoked"', '&amp;', '');
const content: fc.Arbitrary<Content> = fc.record({
  items: fc.uniqueArray(fc.record({ key: fc.nat(12), word, tone: fc.constantFrom('ok', 'warn') }), {
    selector: ({ key }) => key,
    maxLength: 10,
  }),
  count: fc.nat(3),
  isDrawn: fc.boolean(),
  note: fc.option(word),
});

/** The shapes that occur in pages: a table, a drawing, a list, single values, and elements that come and go. */
function render({ items, count, isDrawn, note }: Content): Html {
  const row = ({ key, word, tone }: Item) =>
    keyed(
      key,
      html`<tr class="${tone}"><th>${key}</th><td>${word}<a href="./${key}">${tone}</a></td></tr>`,
    );
  const circle = ({ key, tone }: Item) =>
    keyed(
      key,
      html`<a href="./${key}" class="${tone}"><title>${tone}</title><circle r="${key}"/></a>`,
    );
  const entry = ({ key, word }: Item) =>
    keyed(
      `<${key}>`,
      html`<li>${word}</li>
`,
    );
  return html`${keyed('count', html`<p title="${count}">${count} items</p>`)}
${keyed('table', html`<div>${keyed('caption', html`<p>${items.length} rows</p>`)}<table>${keyed('rows', html`<tbody>${items.map(row)}</tbody>`)}</table></div>`)}
${keyed('graph', isDrawn ? html`<svg viewBox="0 0 9 9">${keyed('nodes', html`<g>${items.map(circle)}</g>`)}</svg>` : html`<p>No drawing.</p>`)}
${keyed('list', html`<ul>${items.map(entry)}</ul>`)}
${keyed('note', html`<section>${note === null ? NO_HTML : keyed('text', html`<p>${note}</p>`)}<p>always</p></section>`)}`;
}

/** Makes the browser patch one content into another; returns the actual and the expected result. */
async function patched(
  page: Page,
  pairs: readonly (readonly [Html, Html, readonly Operation[]])[],
) {
  const given = pairs.map(([from, to, patch]) => [from.text, to.text, patch]);
  return page.evaluate<(readonly [boolean, string, string])[]>(`${JSON.stringify(given)}.map(
    ([from, to, patch]) => {
      const region = document.createElement('div');
      region.setAttribute('data-live', '');
      region.innerHTML = from;
      document.body.replaceChildren(region);
      const isDone = patching.applyPatch(region, patch);
      const wanted = document.createElement('div');
      wanted.innerHTML = to;
      return [isDone, region.innerHTML, wanted.innerHTML];
    })`);
}

test('a patch turns any content into any other', async () => {
  const pairs = fc.sample(fc.tuple(content, content), 400).map(([a, b]) => {
    const [from, to] = [render(a), render(b)];
    const patch = patchBetween(from, to);
    assert.ok(patch !== null);
    return [from, to, patch] as const;
  });
  for (const [isDone, shown, wanted] of await patched(visit.page, pairs)) {
    assert.equal(isDone, true);
    assert.equal(withoutGaps(shown), withoutGaps(wanted));
  }
});

/** Drops line breaks between elements, which depend on the element that was there first. */
function withoutGaps(markup: string): string {
  return markup.replace(/(^|>)\s+(?=<|$)/g, '$1');
}

const ROWS = Array.from({ length: 200 }, (_, key) => ({ key, word: 'active', tone: 'ok' }));
const LONG: Content = { items: ROWS, count: 1, isDrawn: false, note: null };

for (const [name, items, kinds] of [
  ['one changed row', ROWS.with(100, { key: 100, word: 'ended', tone: 'ok' }), ['set', 'set']],
  ['a row that moved to the front', [...ROWS.slice(199), ...ROWS.slice(0, 199)], ['move', 'move']],
  ['a row that moved to the end', [...ROWS.slice(1), ...ROWS.slice(0, 1)], ['move', 'move']],
  ['no change', ROWS, []],
] as const) {
  test(`${name} of 200 is sent as ${kinds.length} operations`, () => {
    const patch = patchBetween(render(LONG), render({ ...LONG, items })) ?? [];
    assert.deepEqual(
      patch.map(([kind]) => kind),
      kinds,
    );
  });
}

test('keys that two elements share never change the wrong one', () => {
  const list = (...words: string[]) =>
    keyed('list', html`<ul>${words.map((word) => keyed('same', html`<li>${word}</li>`))}</ul>`);
  const patch = patchBetween(html`${list('a', 'b')}`, html`${list('a', 'c')}`);
  assert.deepEqual(
    patch?.map(([kind, path]) => [kind, path]),
    [['set', ['list']]],
  );
});

test('a change outside of keyed elements has no patch', () => {
  assert.equal(patchBetween(html`<p>a</p>`, html`<p>b</p>`), null);
});

test('a patch for another page is refused, so that the page is fetched', async () => {
  const from = render(LONG);
  const patch = patchBetween(from, render({ ...LONG, items: ROWS.slice(1) })) ?? [];
  const other = render({ ...LONG, items: ROWS.slice(1) });
  const [outcome] = await patched(visit.page, [[other, other, patch]]);
  assert.equal(outcome?.[0], false);
});
