/**
 * Pages in a real browser: Debian's Chromium, driven by playwright-core. One browser serves a test file;
 * every visit is a context of its own, with its own theme, width and storage.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, chromium, type Page } from 'playwright-core';
import { findChromium } from './programs.ts';

export const NARROW = 360;
export const WIDE = 1440;

/** A hostile name: tags, quotes, an entity, and direction overrides. */
export const HOSTILE_NAME =
  '</title><script>window.hacked=1</script><img src=x onerror="window.hacked=1">\'"&amp;\u202Eliame\u202C שלום';

export interface VisitOptions {
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  readonly javaScript?: boolean;
  /** Whether it is a device with a touch screen. */
  readonly hasTouch?: boolean;
}

export interface Visit {
  readonly page: Page;
  /** Errors and warnings of the console, uncaught errors, failed requests, and requests that leave the origin. */
  readonly problems: readonly string[];
  /** What axe-core finds serious or critical. */
  violations(): Promise<string[]>;
  /** By how many pixels the page scrolls sideways; 0 is expected. */
  overflow(): Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestBrowser {
  /** Opens a page and waits until it is loaded. */
  visit(url: string, options?: VisitOptions): Promise<Visit>;
  close(): Promise<void>;
}

export async function startBrowser(): Promise<TestBrowser> {
  const browser = await chromium.launch({
    executablePath: browserPath(),
    args: browserArguments(),
    // A signal ends the test process at once, and Chromium with it, whose pipe closes.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  return {
    visit: (url, options = {}) => visit(browser, url, options),
    close: () => browser.close(),
  };
}

function browserPath(): string {
  const found = findChromium(process.env);
  if (found === null) throw new Error('Tests of pages need Chromium: npx tsx test/prepare.ts');
  return found;
}

/** Chromium has no sandbox for root, and containers are small in shared memory. */
function browserArguments(): string[] {
  const isRoot = process.getuid?.() === 0;
  return ['--disable-dev-shm-usage', ...(isRoot ? ['--no-sandbox'] : [])];
}

async function visit(browser: Browser, url: string, options: VisitOptions): Promise<Visit> {
  const { theme = 'light', width = WIDE, height = 900, javaScript = true } = options;
  const { hasTouch = false } = options;
  const context = await browser.newContext({
    colorScheme: theme,
    reducedMotion: 'reduce',
    viewport: { width, height },
    javaScriptEnabled: javaScript,
    hasTouch,
  });
  const page = await context.newPage();
  const problems: string[] = [];
  watch(page, new URL(url).origin, problems);
  await page.goto(url, { waitUntil: 'load' });
  return {
    page,
    problems,
    violations: () => violations(page),
    overflow: () => overflow(page),
    [Symbol.asyncDispose]: () => context.close(),
  };
}

function watch(page: Page, origin: string, problems: string[]): void {
  const host = new URL(origin).host;
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()}`));
  page.on('request', (request) => {
    const { protocol, host: asked } = new URL(request.url());
    if (protocol !== 'data:' && asked !== host) problems.push(`outside: ${request.url()}`);
  });
  page.on('websocket', (socket) => {
    if (new URL(socket.url()).host !== host) problems.push(`outside: ${socket.url()}`);
  });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Evaluated, not added as a script, because the policy of the page would refuse that. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate<string[]>(`axe.run(document, { resultTypes: ['violations'] }).then((found) =>
    found.violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')))`);
}

function overflow(page: Page): Promise<number> {
  return page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
}
