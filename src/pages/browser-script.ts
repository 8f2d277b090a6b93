/** Scripts that pages run in the browser; their sources are in `browser/`. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type InlineCode, inlineCode } from './inline-code.ts';

interface Bundler {
  browserScripts(): ReadonlyMap<string, string>;
}

/** Compiled builds contain the bundled scripts; a checkout that runs from source bundles them on demand. */
const isCompiled = import.meta.url.endsWith('.js');
const bundled = isCompiled ? null : bundler().browserScripts();

/** Returns the script of a page, or the one of the frame. */
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
