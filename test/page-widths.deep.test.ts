/** Every page of a network with long names, and of its console, on screens of different widths. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { commandReference } from '../src/cli/command-reference.ts';
import { buildProgram } from '../src/cli/program.ts';
import { PAGES } from '../src/console/routes.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { assertSound, NARROW, sharedBrowser, type Visit } from './support/browser.ts';
import { visitConsole } from './support/console.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { type PageAddress, pageAddresses } from './support/page-addresses.ts';
import { fillNetwork, networkNameOf, sampleNetwork } from './support/sample-networks.ts';
import { DAY, stage, succession } from './support/successions.ts';

const WIDTHS = [NARROW, 768, 1280] as const;
const LONG_NAMES = sampleNetwork('long-names');

const browse = sharedBrowser();
let na: TestAuthority;
let addresses: readonly PageAddress[];

before(async () => {
  const { folder: dataDir } = makeNetworkFolder(networkNameOf(LONG_NAMES));
  na = await startTestAuthority({ dataDir, commands: commandReference(buildProgram()) });
  addresses = pageAddresses(await fillNetwork(na, LONG_NAMES));
});

after(() => na?.[Symbol.asyncDispose]());

test('no page scrolls sideways, states and times are in view, and labels take one line, at any width', async () => {
  const flaws: string[] = [];
  for (const { name, path } of addresses) {
    await using visit = await browse(na.url + path);
    flaws.push(...(await flawsOf(visit, name)));
  }
  assert.deepEqual(flaws, []);
});

for (const path of ['/api-reference', '/cli-reference']) {
  test(`${path} has no errors, outside requests or accessibility violations`, async () => {
    await using visit = await browse(na.url + path);
    await assertSound(visit);
  });
}

test('neither does a page of the console, while a succession is staged', async () => {
  await stage(na, await succession(na, { activatesIn: DAY }));
  await using visit = await visitConsole(browse, na);
  const { page, open } = visit;
  await open('/nodes');
  const node = await page.locator('tbody a').first().getAttribute('href');
  const flaws: string[] = [];
  for (const { path } of PAGES) {
    await open(path === '/node' ? (node ?? '').slice(1) : path);
    flaws.push(...(await flawsOf(visit, path)));
  }
  assert.deepEqual(flaws, []);
});

async function flawsOf(visit: Visit, name: string): Promise<string[]> {
  const flaws: string[] = [];
  for (const width of WIDTHS) {
    await visit.page.setViewportSize({ width, height: 800 });
    const overflow = await visit.overflow();
    if (overflow > 0) flaws.push(`${name} at ${width}: ${overflow} pixels too wide`);
    const cut = await visit.page.evaluate<string[]>(CUT_OFF);
    const wrapped = await visit.page.evaluate<string[]>(WRAPPED_LABELS);
    const scrolled = await visit.page.evaluate<string[]>(SCROLLED);
    flaws.push(...[...cut, ...wrapped, ...scrolled].map((text) => `${name} at ${width}: ${text}`));
  }
  return flaws;
}

/** Texts of states and times that are partly outside the page, or outside the box that scrolls. */
const CUT_OFF = `[...document.querySelectorAll('main .badge, main time')].flatMap((element) => {
  const box = element.closest('.table-box') ?? document.documentElement;
  const { left, right } = box.getBoundingClientRect();
  const isCut = ({ left: from, right: to }) => from < left - 0.5 || to > right + 0.5;
  return [...element.getClientRects()].some(isCut) ? [element.textContent] : [];
})`;

const SCROLLED = `[...document.querySelectorAll('.table-box')].flatMap(({ scrollWidth, clientWidth, textContent }) =>
  scrollWidth > clientWidth + 1 ? ['a table scrolls sideways: ' + textContent.trim().slice(0, 40)] : [],
)`;

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
