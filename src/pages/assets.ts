/** The style sheets and scripts of the pages; their sources are `ui/style.css`, `browser/` and `console/console.css`. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

type AssetName = 'pages.js' | 'pages-style.css' | 'console.js' | 'console-style.css';

interface Bundler {
  browserFiles(): ReadonlyMap<string, string>;
}

/** Compiled builds contain the bundled files; a checkout that runs from source bundles them on demand. */
const isCompiled = import.meta.url.endsWith('.js');
const bundled = isCompiled ? null : bundler().browserFiles();

export function asset(name: AssetName): string {
  return bundled?.get(name) ?? readFileSync(new URL(`./browser/${name}`, import.meta.url), 'utf8');
}

/** An inline style sheet or script, and the source expression that allows it. */
export interface InlineCode {
  readonly text: string;
  /** `'sha256-…'`, for the Content-Security-Policy of the page. */
  readonly source: string;
}

/** Computes the digest once per style sheet or script, when its module is loaded. */
export function inlineCode(text: string): InlineCode {
  if (/<\/(?:script|style)|<!--/i.test(text))
    throw new Error('Inline code must not close its element');
  return { text, source: `'sha256-${createHash('sha256').update(text).digest('base64')}'` };
}

function bundler(): Bundler {
  return createRequire(import.meta.url)('../build/build-browser.cjs') as Bundler;
}
