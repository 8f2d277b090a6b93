/** Shared setup for tests of pages: an authority and a browser for all tests of a file. */
import { after } from 'node:test';
import { startTestAuthority, type TestAuthority, type TestOptions } from './authority.ts';
import { startBrowser, type TestBrowser } from './browser.ts';

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
