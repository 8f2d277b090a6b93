/**
 * Pages in a real browser: Debian's Chromium, driven by playwright-core. One browser serves a test file. Every visit
 * begins with its theme and width, and with nothing stored. What needs no browser, such as texts and links, is cheaper
 * to read in the markup: `pages.ts`.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after } from 'node:test';
import {
  type Browser,
  type ConsoleMessage,
  chromium,
  type Page,
  type Request,
  type WebSocket,
} from 'playwright-core';
import { findChromium } from './programs.ts';

/** Far longer than a page takes on a busy machine: then the failure says what did not come. */
const PATIENCE_MS = 5 * 60_000;

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
  /**
   * Whether the visit needs its own context, because it changes more than its page, such as permissions or the time.
   */
  readonly isApart?: boolean;
}

export interface Visit {
  readonly page: Page;
  /** Errors and warnings of the console, uncaught errors, failed requests, and requests that leave the origin. */
  readonly problems: readonly string[];
  /** Problems that axe-core rates as serious or critical. */
  violations(): Promise<string[]>;
  /** How many pixels the page scrolls sideways; should be 0. */
  overflow(): Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface TestBrowser {
  /** Opens a page and waits until it is loaded. */
  visit(url: string, options?: VisitOptions): Promise<Visit>;
  close(): Promise<void>;
}

/** Checks that nothing goes wrong on the page, at either width and in either theme. */
export async function assertSound(visit: Visit): Promise<void> {
  const { page } = visit;
  for (const [width, colorScheme] of [
    [NARROW, 'light'],
    [WIDE, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await visit.violations(), [], page.url());
    assert.equal(await visit.overflow(), 0, `${page.url()} at ${width}`);
  }
  assert.deepEqual(visit.problems, []);
}

/** Opens pages in one browser for all tests of a file, which starts when the first of them needs it. */
export function sharedBrowser(): TestBrowser['visit'] {
  let started: Promise<TestBrowser> | null = null;
  after(async () => (await started)?.close());
  return async (url, options) => {
    started ??= startBrowser();
    return (await started).visit(url, options);
  };
}

export async function startBrowser(): Promise<TestBrowser> {
  const browser = await chromium.launch({
    executablePath: browserPath(),
    args: browserArguments(),
    // A signal ends the test process immediately, and thus Chromium too, because its pipe closes.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  /** Pages of finished visits, for reuse: a new page needs a process, which takes longer than most visits. */
  const idle: Page[] = [];
  return {
    visit: (url, options = {}) => visit(browser, idle, url, options),
    close: () => browser.close(),
  };
}

function browserPath(): string {
  const found = findChromium(process.env);
  if (found === null) throw new Error('Tests of pages need Chromium: npx tsx test/prepare.ts');
  return found;
}

/** Chromium has no sandbox for root, and containers have little shared memory. */
function browserArguments(): string[] {
  const isRoot = process.getuid?.() === 0;
  return ['--disable-dev-shm-usage', ...(isRoot ? ['--no-sandbox'] : [])];
}

async function visit(
  browser: Browser,
  idle: Page[],
  url: string,
  options: VisitOptions,
): Promise<Visit> {
  const { theme = 'light', width = WIDE, height = 900, javaScript = true } = options;
  const { hasTouch = false, isApart = !javaScript || hasTouch } = options;
  const known = isApart ? undefined : idle.pop();
  const page = known ?? (await newPage(browser, { javaScript, hasTouch }));
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: theme });
  const problems: string[] = [];
  const unwatch = watch(page, new URL(url).host, problems);
  await page.goto(url, { waitUntil: 'load' });
  return {
    page,
    problems,
    violations: () => violations(page),
    overflow: () => overflow(page),
    async [Symbol.asyncDispose]() {
      if (isApart || !(await clearForReuse(page))) return page.context().close();
      unwatch();
      idle.push(page);
    },
  };
}

async function newPage(
  browser: Browser,
  { javaScript, hasTouch }: { readonly javaScript: boolean; readonly hasTouch: boolean },
): Promise<Page> {
  const context = await browser.newContext({
    reducedMotion: 'reduce',
    javaScriptEnabled: javaScript,
    hasTouch,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  return context.newPage();
}

/** Clears what the page has stored and moves the pointer away; returns whether the page can be reused. */
async function clearForReuse(page: Page): Promise<boolean> {
  try {
    await page.evaluate('localStorage.clear(), sessionStorage.clear()');
    await page.mouse.move(-1, -1);
    await page.goto('about:blank');
    return true;
  } catch {
    return false;
  }
}

/** Whether a page was left before it had the answer. */
function isLeft(request: Request): boolean {
  return request.resourceType() === 'fetch' && request.failure()?.errorText === 'net::ERR_ABORTED';
}

/** Records problems of the page; returns a function that stops this. */
function watch(page: Page, host: string, problems: string[]): () => void {
  const listeners = {
    console(message: ConsoleMessage) {
      const isProblem = ['error', 'warning'].includes(message.type());
      if (isProblem) problems.push(`console: ${message.text()}`);
    },
    pageerror: (error: Error) => problems.push(`uncaught: ${error.message}`),
    requestfailed(request: Request) {
      // A stream of events ends when the page is left, and so does what a live page fetches of itself.
      const isOfPage = request.resourceType() === 'eventsource' || isLeft(request);
      if (!isOfPage) problems.push(`failed: ${request.url()}`);
    },
    request(request: Request) {
      const { protocol, host: asked } = new URL(request.url());
      if (protocol !== 'data:' && asked !== host) problems.push(`outside: ${request.url()}`);
    },
    websocket(socket: WebSocket) {
      if (new URL(socket.url()).host !== host) problems.push(`outside: ${socket.url()}`);
    },
  };
  page.on('console', listeners.console);
  page.on('pageerror', listeners.pageerror);
  page.on('requestfailed', listeners.requestfailed);
  page.on('request', listeners.request);
  page.on('websocket', listeners.websocket);
  return () => {
    page.off('console', listeners.console);
    page.off('pageerror', listeners.pageerror);
    page.off('requestfailed', listeners.requestfailed);
    page.off('request', listeners.request);
    page.off('websocket', listeners.websocket);
  };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Evaluates axe-core instead of adding it as a script, which the policy of the page would block. */
async function violations(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in window'))) await page.evaluate(AXE);
  return page.evaluate<
    string[]
  >(`axe.run(document, { resultTypes: ['violations'], selectors: false }).then((found) =>
    found.violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')))`);
}

function overflow(page: Page): Promise<number> {
  return page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
}
