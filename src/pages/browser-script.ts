/** The scripts that pages run in a browser. Their sources are in `browser/`. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type InlineCode, inlineCode } from './inline-code.ts';

interface Bundler {
  browserScripts(): ReadonlyMap<string, string>;
}

/** Everything but a checkout that runs from its sources has the scripts as the build bundled them. */
const isCompiled = import.meta.url.endsWith('.js');
const bundled = isCompiled ? null : bundler().browserScripts();

/** The script of a page, or the theme's. */
export function browserScript(name: string): InlineCode {
  const text = bundled?.get(name) ?? readFileSync(placeOf(name), 'utf8');
  return inlineCode(text);
}

function placeOf(name: string): URL {
  return new URL(`./browser/${name}.js`, import.meta.url);
}

function bundler(): Bundler {
  return createRequire(import.meta.url)('../build/build-browser.cjs') as Bundler;
}
