/** Every page of a network with long names, on screens of different widths. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { NARROW, startBrowser, type TestBrowser } from './support/browser.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { type PageAddress, pageAddresses } from './support/page-addresses.ts';
import { fillNetwork, networkNameOf, sampleNetwork } from './support/sample-networks.ts';

const WIDTHS = [NARROW, 768, 1280] as const;
const LONG_NAMES = sampleNetwork('long-names');

let na: TestAuthority;
let browser: TestBrowser;
let addresses: readonly PageAddress[];

before(async () => {
  const { folder: dataDir } = makeNetworkFolder(networkNameOf(LONG_NAMES));
  na = await startTestAuthority({ dataDir });
  browser = await startBrowser();
  addresses = pageAddresses(await fillNetwork(na, LONG_NAMES));
});

after(async () => {
  await browser?.close();
  await na?.[Symbol.asyncDispose]();
});

test('no page scrolls sideways, states and times are in view, and labels take one line, at any width', async () => {
  const flaws: string[] = [];
  for (const { name, path } of addresses) {
    await using visit = await browser.visit(na.url + path);
    for (const width of WIDTHS) {
      await visit.page.setViewportSize({ width, height: 800 });
      const overflow = await visit.overflow();
      if (overflow > 0) flaws.push(`${name} at ${width}: ${overflow} pixels too wide`);
      const cut = await visit.page.evaluate<string[]>(CUT_OFF);
      const wrapped = await visit.page.evaluate<string[]>(WRAPPED_LABELS);
      flaws.push(...[...cut, ...wrapped].map((text) => `${name} at ${width}: ${text}`));
    }
  }
  assert.deepEqual(flaws, []);
});

/** Texts of states and times that are partly outside the page, or outside the box that scrolls. */
const CUT_OFF = `[...document.querySelectorAll('main .badge, main time')].flatMap((element) => {
  const box = element.closest('.table-box') ?? document.documentElement;
  const { left, right } = box.getBoundingClientRect();
  const isCut = ({ left: from, right: to }) => from < left - 0.5 || to > right + 0.5;
  return [...element.getClientRects()].some(isCut) ? [element.textContent] : [];
})`;

/** Names of columns, on the cards of narrow tables. */
const WRAPPED_LABELS = `(() => {
  const context = document.createElement('canvas').getContext('2d');
  return [...new Set([...document.querySelectorAll('tbody [data-label]')].flatMap((cell) => {
    const { font, width } = getComputedStyle(cell, '::before');
    context.font = font;
    const needed = context.measureText(cell.dataset.label).width;
    return needed > parseFloat(width) ? ['the label ' + cell.dataset.label + ' wraps'] : [];
  }))];
})()`;
