/**
 * `npm run screenshots -- <folder>`: screenshots of every page in both themes and three widths, from real authorities
 * of several networks: an empty one, a usual one, a large one, and one with long names.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { systemRuntime } from '../src/base/runtime.ts';
import { commandReference } from '../src/cli/command-reference.ts';
import { wholeNumber } from '../src/cli/options.ts';
import { buildProgram } from '../src/cli/program.ts';
import { startTestAuthority } from '../test/support/authority.ts';
import { NARROW, startBrowser, type TestBrowser } from '../test/support/browser.ts';
import { testClock } from '../test/support/clock.ts';
import { makeNetworkFolder } from '../test/support/folders.ts';
import { pageAddresses } from '../test/support/page-addresses.ts';
import {
  fillNetwork,
  foundingTime,
  networkNameOf,
  SAMPLE_NETWORKS,
  type SampleNetwork,
} from '../test/support/sample-networks.ts';

const THEMES = ['light', 'dark'] as const;
const WIDTHS = [NARROW, 768, 1280] as const;

interface Options {
  readonly height: number;
  readonly network?: string;
}

const COMMANDS = commandReference(buildProgram());

await new Command('screenshots')
  .description('takes pictures of every page, in a folder for each network')
  .argument('<folder>', 'where the pictures go')
  .option('--height <pixels>', 'as much of a page as is shown at most', wholeNumber(16_000), 3000)
  .addOption(
    new Option('--network <name>', 'of this network only').choices(
      SAMPLE_NETWORKS.map(({ name }) => name),
    ),
  )
  .action(drawAll)
  .parseAsync();

async function drawAll(folder: string, { height, network }: Options): Promise<void> {
  const browser = await startBrowser();
  try {
    for (const sample of SAMPLE_NETWORKS) {
      if (network !== undefined && network !== sample.name) continue;
      const target = join(folder, sample.name);
      mkdirSync(target, { recursive: true });
      await drawNetwork(browser, sample, target, height);
    }
  } finally {
    await browser.close();
  }
}

async function drawNetwork(
  browser: TestBrowser,
  sample: SampleNetwork,
  target: string,
  most: number,
): Promise<void> {
  // Browsers show times relative to the real present.
  const clock = testClock(foundingTime(systemRuntime.now()));
  const { folder: dataDir } = makeNetworkFolder(networkNameOf(sample), { now: clock.now() });
  try {
    await using na = await startTestAuthority({ dataDir, clock, commands: COMMANDS });
    for (const { name, path } of pageAddresses(await fillNetwork(na, sample))) {
      for (const theme of THEMES) {
        for (const width of WIDTHS) {
          const file = join(target, `${name}-${theme}-${width}.png`);
          await draw(browser, na.url + path, { theme, width }, file, most);
          process.stdout.write(`${file}\n`);
        }
      }
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The full page, unless it is very long; at least one screen. */
async function draw(
  browser: TestBrowser,
  url: string,
  { theme, width }: { readonly theme: (typeof THEMES)[number]; readonly width: number },
  file: string,
  most: number,
): Promise<void> {
  await using visit = await browser.visit(url, { theme, width, height: Math.min(most, 800) });
  const { page } = visit;
  const whole = await page.evaluate<number>('document.documentElement.scrollHeight');
  const clip = { x: 0, y: 0, width, height: Math.min(most, whole) };
  await page.screenshot({ path: file, fullPage: true, clip });
}
