/**
 * `npx tsx test/screenshots.ts [<folder>]`: pictures of every page, of the service and of its console, in both themes
 * and three widths, from real authorities of several networks: an empty one, a usual one, one of 10,000 nodes, one of 400
 * sovereigns, and one with long names.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import type { Page } from 'playwright-core';
import { seed } from '../bench/seed.ts';
import { systemRuntime } from '../src/base/runtime.ts';
import { commandReference } from '../src/cli/command-reference.ts';
import { wholeNumber } from '../src/cli/kernel/options.ts';
import { buildProgram } from '../src/cli/program.ts';
import { ACTIONS, PAGES } from '../src/console/routes.ts';
import { startTestAuthority, type TestAuthority } from './support/authority.ts';
import { NARROW, startBrowser, type TestBrowser } from './support/browser.ts';
import { MINUTE, testClock } from './support/clock.ts';
import { startTestConsole } from './support/console.ts';
import { makeNetworkFolder } from './support/folders.ts';
import { type PageAddress, pageAddresses } from './support/page-addresses.ts';
import { get, operate } from './support/requests.ts';
import {
  fillNetwork,
  foundingTime,
  HEALTHY_NETWORK,
  networkNameOf,
  SAMPLE_NETWORKS,
  type SampleNetwork,
  type SampleSubjects,
} from './support/sample-networks.ts';

const THEMES = ['light', 'dark'] as const;
const WIDTHS = [NARROW, 768, 1280] as const;

/** An authority filled with things to show. */
interface FilledNetwork extends AsyncDisposable {
  readonly na: TestAuthority;
  readonly subjects: SampleSubjects;
}

const NETWORKS: readonly { readonly name: string; filled(): Promise<FilledNetwork> }[] = [
  ...SAMPLE_NETWORKS.map((sample) => ({ name: sample.name, filled: () => filledSample(sample) })),
  { name: 'fleet', filled: filledFleet },
];

interface Options {
  readonly height: number;
  readonly network?: string;
  readonly only?: string;
  readonly docs?: boolean;
}

/** The pictures in the documents. */
const DOCUMENTED = { folder: 'docs/screenshots', pages: ['dashboard', 'connectome'], height: 1200 };

const COMMANDS = commandReference(buildProgram());

await new Command('screenshots')
  .description('takes pictures of every page, in a folder for each network')
  .argument('[folder]', 'where the pictures go', 'screenshots')
  .option('--height <pixels>', 'as much of a page as is shown at most', wholeNumber(16_000), 3000)
  .addOption(
    new Option('--network <name>', 'of this network only').choices(
      NETWORKS.map(({ name }) => name),
    ),
  )
  .option('--only <beginning>', 'only pictures whose names begin like this')
  .option('--docs', `only the pictures of the documents, to ${DOCUMENTED.folder}`)
  .action(drawAll)
  .parseAsync();

async function drawAll(
  folder: string,
  { height, network, only = '', docs }: Options,
): Promise<void> {
  const browser = await startBrowser();
  try {
    if (docs) return await drawDocumented(browser);
    for (const { name, filled } of NETWORKS) {
      if (network !== undefined && network !== name) continue;
      const target = join(folder, name);
      mkdirSync(target, { recursive: true });
      await using held = await filled();
      const { na, subjects } = held;
      const named = ({ name: each }: { readonly name: string }) => each.startsWith(only);
      await drawSite(browser, na.url, pageAddresses(subjects).filter(named), target, height);
      const pages = (await consoleAddresses(na)).filter(named);
      if (pages.length === 0) continue;
      await using console = await startTestConsole(na);
      await drawSite(browser, console.url, pages, target, height);
    }
  } finally {
    await browser.close();
  }
}

async function drawDocumented(browser: TestBrowser): Promise<void> {
  await using held = await filledSample(HEALTHY_NETWORK);
  await using visit = await browser.visit(held.na.url, { isApart: true });
  for (const { name, path } of pageAddresses(held.subjects)) {
    if (!DOCUMENTED.pages.includes(name)) continue;
    const look = { theme: 'light', width: 1280 } as const;
    const file = join(DOCUMENTED.folder, `${name}.png`);
    await draw(visit.page, held.na.url + path, look, file, DOCUMENTED.height);
  }
}

/** Draws the pages below the address; the console's address signs the browser in first. */
async function drawSite(
  browser: TestBrowser,
  url: string,
  addresses: readonly PageAddress[],
  target: string,
  most: number,
): Promise<void> {
  await using visit = await browser.visit(url, { isApart: true });
  const { page } = visit;
  if (new URL(url).hash !== '') await page.waitForURL(/\/overview$/);
  const root = new URL('.', page.url());
  for (const { name, path } of addresses) {
    const address = new URL(`.${path}`, root).href;
    for (const { look, file } of looksOf(name, target)) await draw(page, address, look, file, most);
  }
}

interface Look {
  readonly theme: (typeof THEMES)[number];
  readonly width: number;
}

function* looksOf(name: string, target: string): Generator<{ look: Look; file: string }> {
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      const file = join(target, `${name}-${theme}-${width}.png`);
      yield { look: { theme, width }, file };
      process.stdout.write(`${file}\n`);
    }
  }
}

/** Every page of the console, a node, and the forms of changes that are on no page. */
async function consoleAddresses(na: TestAuthority): Promise<PageAddress[]> {
  const first = await operate(na, '/admin/certificates?limit=1', {}, { method: 'GET' });
  const [row] = first.body.certificates as readonly { node_public_key: string }[];
  const key = row && encodeURIComponent(row.node_public_key);
  const pages = PAGES.filter(({ path }) => path !== '/node').map(({ path }) => [path, path]);
  const further = [
    ['/nodes-none', '/nodes?q=nothing-like-it'],
    ['/contacts-grouped', '/contacts?group=rack'],
    ['/audit-check', '/audit-check'],
  ];
  const forms = [...ACTIONS.keys()].map((name) => [`/form-${name}`, `/do?action=${name}`]);
  const ofNode = [
    ['/node', `/node?key=${key}`],
    ['/revoke-node', `/do?action=revoke-node&node_public_key=${key}`],
  ];
  return [...pages, ...further, ...forms, ...(key === undefined ? [] : ofNode)].map(
    ([name = '', path = '']) => ({ name: `console${name.replace('/', '-')}`, path }),
  );
}

async function filledSample(sample: SampleNetwork): Promise<FilledNetwork> {
  // Browsers show times relative to the real current time.
  const clock = testClock(foundingTime(systemRuntime.now()));
  const { folder: dataDir } = makeNetworkFolder(networkNameOf(sample), { now: clock.now() });
  // The network is filled with heartbeats a quarter of an hour apart.
  const environment = { MESH_ACTIVE_NODE_WINDOW_SECONDS: '1200' };
  const na = await startTestAuthority({ dataDir, clock, commands: COMMANDS, environment });
  return { na, subjects: await fillNetwork(na, sample), ...whenDone(na, dataDir) };
}

/** 10,000 nodes and nothing else. */
async function filledFleet(): Promise<FilledNetwork> {
  const dataDir = mkdtempSync(join(tmpdir(), 'fleet-'));
  await seed(dataDir, { nodes: 10_000, revoked: 120, invites: 40, agents: 300, named: 10_000 });
  const clock = testClock(systemRuntime.now());
  const na = await startTestAuthority({ dataDir, clock, commands: COMMANDS });
  for (let minute = 0; minute < 3; minute += 1) {
    clock.advance(MINUTE);
    await get(na, '/dashboard.json');
    await na.recordHistory();
  }
  const none = { trusted: null, distrusted: null, treaty: null, revokedTreaty: null };
  const subjects = { self: 'bench', ...none, attestation: null, capability: null };
  return { na, subjects, ...whenDone(na, dataDir) };
}

function whenDone(na: TestAuthority, dataDir: string): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      await na[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The full page, unless it is very long; at least one screen. */
async function draw(
  page: Page,
  url: string,
  { theme, width }: Look,
  file: string,
  most: number,
): Promise<void> {
  await page.setViewportSize({ width, height: Math.min(most, 800) });
  await page.goto(url, { waitUntil: 'load' });
  await page.emulateMedia({ colorScheme: theme });
  const whole = await page.evaluate<number>('document.documentElement.scrollHeight');
  const clip = { x: 0, y: 0, width, height: Math.min(most, whole) };
  await page.screenshot({ path: file, fullPage: true, clip });
}
