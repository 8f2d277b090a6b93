/** The frame of the pages of the console, which is that of the public pages with links, style and script of its own. */

import { verdictLine } from '../pages/dashboard/posture-section.ts';
import { type FramedParts, framed, type Site } from '../pages/ui/frame.ts';
import { type Html, html, NO_HTML } from '../pages/ui/html.ts';
import { LIVE_STATUS, liveRegion } from '../pages/ui/parts.ts';
import type { Context } from './context.ts';
import type { PageGroup } from './page.ts';

export type Theme = 'light' | 'dark';

/** What the browser shows; kept here, because the console stores nothing in the browser. */
export interface Look {
  readonly theme: Theme | null;
  /** The address of the page, relative, to return to. */
  readonly here: string;
}

export interface ShellParts extends Pick<FramedParts, 'title' | 'heading' | 'lede' | 'body'> {
  /** The path of the page; empty if there is none. */
  readonly path: string;
  /** The events after which it fetches itself again; without any, nothing of it changes while it is open. */
  readonly news?: string | null;
}

export function consolePage(
  { news = null, ...parts }: ShellParts,
  groups: readonly PageGroup[],
  { networkName, keyId, tier, isReadOnly, url, posture }: Context,
  look: Look,
): string {
  const own = groups.flatMap(({ pages }) => pages).find(({ path }) => path === parts.path);
  // Other pages are reached from the nodes, and belong to them.
  const path = own === undefined || own.isInNavigation ? parts.path : '/nodes';
  const may = isReadOnly ? 'read-only' : (tier ?? 'tier unknown');
  const site: Site = {
    kind: 'Console',
    navigation: groups.map(({ name, pages }) => ({
      name,
      pages: pages
        .filter((page) => page.isInNavigation)
        .map(({ path: each, title }) => [each, title] as const),
    })),
    head: HEAD,
    tools: themeForm(look),
    footer: `${keyId} (${may}) at ${url}. This page comes from your own machine; the key stays with the program that serves it.`,
    theme: look.theme,
  };
  // The first page has it in full.
  const verdict =
    posture === null || path === '/overview' ? NO_HTML : verdictLine(posture, './overview');
  const body = html`${verdict}${parts.body}`;
  const framedParts = { ...parts, path, networkName, end: KEYS, body };
  if (news === null) return framed(framedParts, site).text;
  const pauseMs = news === EVERY_EVENT ? PAUSE_MS : 0;
  const region = { source: news, version: '', pauseMs, everyMs: EVERY_MS };
  const live = { status: LIVE_STATUS, body: liveRegion(region, body) };
  return framed({ ...framedParts, ...live }, site).text;
}

/** What is not logged, such as contacts, is fetched this often. */
const EVERY_MS = 30_000;
/** A busy network logs much, and a page may take the authority 100 ms; what is logged after a pause is shown at once. */
const PAUSE_MS = 5000;
/** The events of whatever is logged from now on. */
export const EVERY_EVENT = './audit-news';

/** The page for a browser without the cookie. */
export function loginPage(problem: string | null): string {
  const body = html`${
    problem === null ? '' : html`<p class="notice danger" role="alert">${problem}</p>`
  }<form class="ask" method="post" action="/session" data-token-form>
<p class="field"><label for="token">Token</label><input type="text" id="token" name="token" required autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Open</button></p>
</form>`;
  return framed(
    {
      title: 'Open the console',
      lede: 'Open the address that mesh-na console printed, or paste the token at its end. The token works once.',
      path: '',
      networkName: 'mesh-na',
      body,
    },
    {
      kind: 'Console',
      navigation: [],
      head: HEAD,
      tools: NO_HTML,
      footer: 'This page comes from your own machine.',
    },
  ).text;
}

/** A problem in one line. */
export function problemLine(problem: string): Html {
  return html`<p class="notice danger" role="alert">${problem}</p>`;
}

const HEAD = html`<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="./style.css">
<script src="./console.js" defer></script>`;

/** The server cannot know the theme of the system; a script does, and switches without leaving the page. */
function themeForm({ here, theme }: Look): Html {
  return html`<form method="post" action="./theme" data-theme-form><input type="hidden" name="back" value="${here}"><input type="hidden" name="theme" value="${theme === 'dark' ? 'light' : 'dark'}"><button class="tool theme" type="submit" aria-label="Switch theme"></button></form>`;
}

const KEYS = html`<dialog class="keys" aria-labelledby="keys-heading" data-keys>
<h2 id="keys-heading">Keyboard shortcuts</h2>
<dl class="facts">
<dt><kbd>/</kbd></dt><dd>Search</dd>
<dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>Next and previous row</dd>
<dt><kbd>Enter</kbd></dt><dd>Open the row</dd>
<dt><kbd>?</kbd></dt><dd>Show these shortcuts</dd>
<dt><kbd>Esc</kbd></dt><dd>Close this window</dd>
</dl>
<form method="dialog"><button class="button">Close</button></form>
</dialog>`;
