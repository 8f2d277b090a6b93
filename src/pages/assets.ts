/** The style sheets and scripts of the pages; their sources are `ui/style.css`, `browser/` and `console/console.css`. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { getScript, getStyle } from '../protocol/api/pages.ts';
import { ownDocument, type PublishedDocument, versionOf } from '../protocol/contract/documents.ts';

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

/** A file that all pages load, under the digest of its content. */
export interface PageAsset {
  readonly path: string;
  readonly digest: string;
  readonly document: PublishedDocument;
}

export const STYLE = pageAsset(asset('pages-style.css'), getStyle.path);
export const SCRIPT = pageAsset(asset('pages.js'), getScript.path);

function pageAsset(text: string, template: string): PageAsset {
  const document = ownDocument(text);
  const digest = versionOf(document.etag);
  return { path: template.replace('{digest}', digest), digest, document };
}

function bundler(): Bundler {
  return createRequire(import.meta.url)('../build/build-browser.cjs') as Bundler;
}
