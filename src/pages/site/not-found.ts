/** The page for a path that does not exist. */

import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { html } from '../ui/html.ts';

/** Nobody types deeper paths, but clients may send paths of any depth. */
const DEEPEST = 16;

/** Renders the page once for each depth of a path; null for one that is too deep. */
export function notFoundPages(networkName: string): (path: string) => HtmlPage | null {
  const pages = new Map<number, HtmlPage>();
  return (path) => {
    const depth = path.split('/', DEEPEST + 2).length - 2;
    if (depth >= DEEPEST) return null;
    const page = pages.get(depth) ?? notFoundPage(networkName, depth);
    pages.set(depth, page);
    return page;
  };
}

/** Links climb to the top of the site, so that they also work behind a proxy with a path prefix. */
function notFoundPage(networkName: string, depth: number): HtmlPage {
  const top = depth === 0 ? '.' : Array(depth).fill('..').join('/');
  return renderPage({
    title: 'Page not found',
    lede: 'There is nothing at this address. It may be misspelled, or belong to another version.',
    path: '',
    top,
    networkName,
    body: html`<form class="ask" action="${top}/search" role="search">
<p class="field"><label for="q">Search everything public</label><input id="q" name="q" type="search" placeholder="name, id, path or command" autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Search</button></p>
</form>
<p>Or start from the <a href="${top}/">home page</a>, the <a href="${top}/dashboard">dashboard</a>, the <a href="${top}/api-reference">API reference</a> or the <a href="${top}/cli-reference">CLI reference</a>.</p>`,
  });
}
