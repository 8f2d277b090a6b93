/** The frame of the pages of the console, which is that of the public pages with links, style and script of its own. */

import { browserScript } from '../pages/browser-script.ts';
import { type FramedParts, framed, type Site } from '../pages/frame.ts';
import { HISTORY_STYLE } from '../pages/history-style.ts';
import { type Html, html, NO_HTML } from '../pages/html.ts';
import { ADDED_STYLE, CODE_STYLE, FACTS_STYLE, FORM_STYLE, STYLE } from '../pages/style.ts';
import { LISTING_STYLE, TABLE_STYLE } from '../pages/table.ts';
import type { Context } from './context.ts';
import type { Page } from './page.ts';

export type Theme = 'light' | 'dark';

/** What the browser shows; kept here, because the console stores nothing in the browser. */
export interface Look {
  readonly theme: Theme | null;
  /** The address of the page, relative, to return to. */
  readonly here: string;
}

export interface ShellParts
  extends Pick<FramedParts, 'title' | 'heading' | 'lede' | 'status' | 'body'> {
  /** The path of the page; empty if there is none. */
  readonly path: string;
}

export function consolePage(
  parts: ShellParts,
  pages: readonly Page[],
  { networkName, keyId, tier, isReadOnly, url }: Context,
  look: Look,
): string {
  const shown = pages.filter((page) => page.isInNavigation);
  const own = pages.find(({ path }) => path === parts.path);
  // Other pages are reached from the nodes, and belong to them.
  const path = own === undefined || own.isInNavigation ? parts.path : '/nodes';
  const may = isReadOnly ? 'read-only' : (tier ?? 'tier unknown');
  const site: Site = {
    kind: 'Console',
    navigation: shown.map(({ path, title }) => [path, title]),
    head: HEAD,
    tools: themeForm(look),
    footer: `${keyId} (${may}) at ${url}. This page comes from your own machine; the key stays with the program that serves it.`,
    theme: look.theme,
  };
  return framed({ ...parts, path, networkName, end: KEYS }, site).text;
}

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

function themeForm({ here }: Look): Html {
  return html`<form method="post" action="./theme"><input type="hidden" name="back" value="${here}"><input type="hidden" name="system" value="light" data-system-theme><button class="tool theme" type="submit" aria-label="Switch theme"></button></form>`;
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

export const SCRIPT_TEXT = browserScript('console').text;

export const STYLE_TEXT = `${STYLE.text}${FORM_STYLE}${FACTS_STYLE}${TABLE_STYLE}${LISTING_STYLE}${HISTORY_STYLE}${CODE_STYLE}${ADDED_STYLE}
.pages ul { flex-wrap: wrap; }
@media (min-width: 52.01rem) {
  .top-row { column-gap: 1rem; }
  .pages a { padding-inline: 0.5rem; }
  .brand-name { max-width: 12rem; }
}
pre.code { white-space: pre-wrap; overflow-wrap: anywhere; }
.ask input[type="number"], .ask textarea, .confirm input {
  width: 100%; padding: 0.5rem 0.75rem; font: inherit; color: inherit;
  background: var(--surface); border: 1px solid var(--line-strong); border-radius: 6px;
}
.ask textarea { min-height: 8rem; font-family: var(--mono); font-size: 0.875rem; }
.ask .wide { grid-column: 1 / -1; }
.ask .mono { max-width: 32rem; }
.ask .ask { grid-template-columns: repeat(auto-fit, minmax(min(100%, 11rem), 1fr)); }
@media (min-width: 48rem) {
  .ask[data-changes] { grid-template-columns: repeat(3, minmax(0, 1fr)); }
  .ask[role="search"]:not(:has(> :nth-child(4 of .field))) > .field:has(> [type="search"]) { grid-column: span 2; }
}
.ask[data-changes] { align-items: start; }
.ask button.danger { background: var(--danger); border-color: var(--danger); }
.ask[data-changes] > :last-child { grid-column: 1 / -1; }
summary { cursor: pointer; padding-block: 0.375rem; }
.field .hint { font-size: 0.8125rem; color: var(--muted); }
.confirm { display: grid; gap: 1rem; max-width: 34rem; }
.confirm input { max-width: 12rem; }
.confirm button, .button {
  justify-self: start; display: inline-block; padding: 0.5rem 1.25rem; min-height: 2.75rem; font: inherit; font-weight: 600; cursor: pointer;
  color: var(--accent); background: none; border: 1px solid var(--accent); border-radius: 6px; text-decoration: none;
}
.button:hover { background: var(--accent-soft); }
.button.danger { color: var(--danger); border-color: var(--danger); }
.button.danger:hover { background: var(--danger-soft); }
.confirm button, .button.primary { color: var(--surface); background: var(--accent); }
.confirm button.danger { background: var(--danger); border-color: var(--danger); }
td .button, .copy-text, .keys .button { align-self: start; min-height: 0; padding: 0.25rem 0.75rem; font-size: 0.875rem; white-space: nowrap; }
.copy-text { font-family: inherit; color: inherit; background: var(--surface); border: 1px solid var(--line-strong); border-radius: 6px; cursor: pointer; }
.copy-text:hover { background: var(--sunken); }
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: 0.75rem; }
td .actions { flex-wrap: nowrap; gap: 0.25rem; }
.actions > a:not(.button) { padding-block: 0.5rem; }
.plain { display: grid; gap: 0.25rem; padding: 0; list-style: none; }
.effects { display: grid; gap: 0.25rem; padding-inline-start: 1.25rem; }
.ages { display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; padding: 0; list-style: none; font-size: 0.875rem; }
.cells { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.5rem; overflow-wrap: anywhere; }
.cells svg { width: 100%; max-width: 60rem; }
.cells svg > :hover rect { stroke: var(--ink); }
.bars { display: grid; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); gap: 0.5rem 1.5rem; padding: 0; list-style: none; font-size: 0.875rem; }
.bars svg { display: block; width: 100%; height: 0.5rem; background: var(--sunken); }
.age0 { fill: var(--ok); }
.age1 { fill: var(--warn); fill-opacity: 0.5; }
.age2 { fill: var(--warn); }
.age3 { fill: var(--danger); fill-opacity: 0.6; }
.age4 { fill: var(--danger); }
.lines { display: grid; justify-items: start; }
td.id, th.id, td.operator { white-space: nowrap; }
.words, .state { min-width: 7.25rem; overflow-wrap: anywhere; }
.members { display: flex; flex-wrap: wrap; gap: 0 1rem; overflow-wrap: anywhere; }
.members code { font-size: 0.8125rem; }
@media (max-width: 60rem) {
  .table-box tbody tr > * { overflow-wrap: anywhere; }
  .table-box tbody tr > td:empty { display: none; }
  .table-box td.wide { grid-column: 1 / -1; }
}
tr[data-current] > * { background: var(--accent-soft); }
.keys { margin: auto; color: var(--ink); background: var(--surface); border: 1px solid var(--line-strong); border-radius: var(--radius); padding: 1.5rem; }
.keys::backdrop { background: rgb(0 0 0 / 0.4); }
.keys[open] { display: grid; gap: 1rem; }
.keys .facts { grid-template-columns: max-content 1fr; gap: 0.5rem 1.5rem; }
kbd { padding: 0.0625rem 0.375rem; border: 1px solid var(--line-strong); border-radius: 4px; }`;
