/** Shared setup for tests of pages, and what can be read in their markup without a browser. */
import { after } from 'node:test';
import { startTestAuthority, type TestAuthority, type TestOptions } from './authority.ts';
import { startBrowser, type TestBrowser } from './browser.ts';

/** An authority and a browser for all tests of a file. */
export async function startPages(
  options?: TestOptions,
): Promise<{ readonly na: TestAuthority; readonly browser: TestBrowser }> {
  const browser = await startBrowser();
  const na = await startTestAuthority(options);
  after(async () => {
    await browser.close();
    await na[Symbol.asyncDispose]();
  });
  return { na, browser };
}

const CHARACTERS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

/** What a reader sees of the markup. */
export function textOf(markup: string): string {
  return markup
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(amp|lt|gt|quot);/g, (_, name: string) => CHARACTERS[name] ?? '');
}

/** The values of an attribute, such as `href`, of the elements with this name. */
export function attributesOf(markup: string, element: string, attribute: string): string[] {
  const found = markup.matchAll(new RegExp(`<${element}\\s[^>]*?\\b${attribute}="([^"]*)"`, 'g'));
  return [...found].map(([, value = '']) => textOf(value));
}

/** The markup of each entry of a reference, by its anchor. */
export function entriesOf(markup: string): ReadonlyMap<string, string> {
  const entries = markup.matchAll(
    /<article class="entry" id="([^"]*)" data-entry>(.*?)<\/article>/gs,
  );
  return new Map([...entries].map(([, id = '', entry = '']) => [id, entry]));
}
