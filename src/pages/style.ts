/**
 * The shared style of all pages. Colors come in light and dark pairs; every text color has a contrast of at least
 * 4.5 to 1 on its surfaces. Pages use system fonts.
 */
import { inlineStyle } from './inline-code.ts';

const COLOURS = `
:root {
  color-scheme: light dark;
  --paper: light-dark(#f6f6f2, #0f1317);
  --surface: light-dark(#ffffff, #161b21);
  --sunken: light-dark(#efefe9, #1c2229);
  --ink: light-dark(#1a1e22, #e7eaed);
  --muted: light-dark(#565e66, #9ba6b0);
  --line: light-dark(#dedcd4, #2a323a);
  --line-strong: light-dark(#bdbab0, #434d57);
  --accent: light-dark(#0a5a68, #6fc8d6);
  --accent-soft: light-dark(#e2eff0, #14303a);
  --ok: light-dark(#14603a, #84d7a6);
  --ok-soft: light-dark(#e0f1e6, #12301f);
  --warn: light-dark(#764700, #f0c26f);
  --warn-soft: light-dark(#fbeed0, #352709);
  --danger: light-dark(#981b1b, #f6a49e);
  --danger-soft: light-dark(#fae4e1, #3c1816);
  --sans: system-ui, sans-serif;
  --mono: ui-monospace, Menlo, Consolas, monospace;
  --radius: 8px;
}
:root[data-theme="light"] { color-scheme: light; }
:root[data-theme="dark"] { color-scheme: dark; }
`;

const TEXT = `
*, ::before, ::after { box-sizing: border-box; margin: 0; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: 5rem; }
body {
  background: var(--paper); color: var(--ink);
  font: 1rem/1.55 var(--sans); overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums;
}
h1, h2, h3, h4 { line-height: 1.25; text-wrap: balance; }
h1 { font-size: clamp(1.6rem, 1.2rem + 1.8vw, 2.25rem); font-weight: 650; letter-spacing: -0.02em; }
h2 { font-size: 1.25rem; font-weight: 650; letter-spacing: -0.01em; }
h3 { font-size: 1rem; font-weight: 650; }
h4 { font-size: 0.875rem; font-weight: 650; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 0.18em; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
[tabindex="-1"]:focus { outline: none; }
code, pre, kbd, .mono { font-family: var(--mono); font-size: 0.875em; }
.muted { color: var(--muted); }
.small { font-size: 0.875rem; }
.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
[hidden] { display: none !important; }
`;

const LAYOUT = `
.skip {
  position: absolute; left: 1rem; top: -4rem; z-index: 3; padding: 0.5rem 1rem;
  background: var(--accent); color: var(--surface); border-radius: 0 0 var(--radius) var(--radius);
}
.skip:focus { top: 0; }
.top { position: sticky; top: 0; z-index: 2; background: var(--surface); border-bottom: 1px solid var(--line); }
.top-row, main, .bottom { max-width: 76rem; margin-inline: auto; padding-inline: clamp(1rem, 4vw, 2rem); }
.top-row { display: flex; align-items: center; gap: 0.25rem 1.5rem; min-height: 3.75rem; }
.brand { flex: 0 1 auto; min-width: 0; }
.brand a { display: flex; align-items: center; gap: 0.625rem; color: inherit; text-decoration: none; }
.mark { flex: none; fill: var(--surface); stroke: var(--accent); stroke-width: 1.75; stroke-linejoin: round; }
.brand-text { display: grid; min-width: 0; line-height: 1.2; }
.brand-name { font-weight: 650; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 16rem; }
.brand-kind { font-size: 0.75rem; color: var(--muted); white-space: nowrap; }
.pages { flex: 1 1 auto; min-width: 0; }
.pages ul { display: flex; justify-content: flex-end; gap: 0.125rem; padding: 0; list-style: none; }
.pages a {
  display: block; padding: 0.375rem 0.75rem; border-radius: 6px; font-size: 0.9375rem;
  color: var(--muted); text-decoration: none; white-space: nowrap;
}
.pages a:hover { color: var(--ink); background: var(--sunken); }
.pages a[aria-current] { color: var(--accent); background: var(--accent-soft); font-weight: 600; }
.tool {
  flex: none; display: grid; grid-auto-flow: column; place-items: center; min-width: 2.25rem; height: 2.25rem; padding: 0; gap: 0.5rem;
  border: 1px solid var(--line); border-radius: 6px; background: none; color: var(--muted); cursor: pointer;
}
.tool:hover { color: var(--ink); border-color: var(--line-strong); }
.search-link { padding-inline: 0.75rem; font-size: 0.875rem; text-decoration: none; }
.search-link kbd { padding-inline: 0.3125rem; border: 1px solid var(--line); border-radius: 4px; }
.theme::before { content: ""; width: 0.9375rem; height: 0.9375rem; border: 1.5px solid; border-radius: 50%; background: conic-gradient(currentColor 50%, #0000 0); }
main { display: grid; grid-template-columns: minmax(0, 1fr); gap: 2.5rem; padding-block: clamp(1.5rem, 4vw, 3rem) 3rem; }
.page-head { display: grid; gap: 0.5rem; }
.lede { max-width: 44rem; font-size: 1.0625rem; color: var(--muted); text-wrap: pretty; }
.section { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; }
.section-head { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 0.25rem 1rem; }
.bottom { padding-block: 0 2.5rem; color: var(--muted); font-size: 0.875rem; }
.bottom p { padding-top: 1.25rem; border-top: 1px solid var(--line); }
@media (max-width: 52rem) {
  .top { position: static; }
  html { scroll-padding-top: 1rem; }
  .top-row { flex-wrap: wrap; padding-block: 0.625rem; }
  .brand { flex: 1 1 0; }
  .pages { order: 3; flex: 1 0 100%; }
  .pages ul { flex-wrap: wrap; justify-content: flex-start; margin-inline: -0.5rem; }
  .pages a { padding-inline: 0.5rem; font-size: 0.875rem; }
}
@media (max-width: 30rem) { .search-link kbd { display: none; } }
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
@media print { .top, .bottom, .skip { display: none; } body { background: none; } }
`;

const PARTS = `
.badge {
  display: inline-block; padding: 0.0625rem 0.5rem; border-radius: 999px; font-size: 0.8125rem; font-weight: 600;
  line-height: 1.5; white-space: nowrap; background: var(--soft, var(--sunken)); color: var(--tone, var(--muted));
}
.badge::first-letter { text-transform: uppercase; }
.ok { --tone: var(--ok); --soft: var(--ok-soft); }
.warn { --tone: var(--warn); --soft: var(--warn-soft); }
.danger { --tone: var(--danger); --soft: var(--danger-soft); }
.id { font-family: var(--mono); font-size: 0.8125rem; overflow-wrap: anywhere; }
:has(> i) { white-space: nowrap; }
i { font-size: 0; }
i::before { content: "…"; font-size: 0.8125rem; }
.empty { padding: 1.5rem; text-align: center; color: var(--muted); border: 1px dashed var(--line-strong); border-radius: var(--radius); }
.empty code { display: inline-block; }
html:not(.js) .needs-js { display: none !important; }
time { white-space: nowrap; }
`;

/** What every page has; in the order in which a page uses it: frame, sections, parts. */
export const STYLE = inlineStyle([COLOURS, TEXT, LAYOUT, PARTS].join(''));

/** Commands and documents as they are typed. */
export const CODE_STYLE = `
pre.code {
  padding: 0.75rem 1rem; overflow-x: auto; overflow-wrap: normal; white-space: pre;
  background: var(--sunken); border: 1px solid var(--line); border-radius: var(--radius);
  line-height: 1.6;
}
`;

/** The copy buttons of ids, and relative times, which scripts add. */
export const ADDED_STYLE = `
dd.id, dd > .id, li > .id { display: grid; grid-template-columns: minmax(0, max-content) auto; justify-content: start; align-items: end; }
.copy-id { margin-inline-start: 0.375rem; padding: 0; width: 1.5rem; height: 1.5rem; border: 0; border-radius: 4px; background: none; color: var(--muted); vertical-align: middle; cursor: pointer; }
.copy-id::before { content: ""; display: block; width: 0.5625rem; height: 0.6875rem; margin: 0.125rem auto 0 0.375rem; border: 1.5px solid; border-radius: 2px; box-shadow: 3px -3px 0 -1.5px var(--surface), 3px -3px 0 0 currentColor; }
.copy-id[data-copied] { color: var(--ok); }
.copy-id[data-copied]::before { background: currentColor; }
.copy-id:hover { color: var(--ink); background: var(--sunken); }
time[data-relative]::after { content: " (" attr(data-relative) ")"; color: var(--muted); font-size: 0.8125rem; }
`;

/** A field that is typed into. */
export const INPUT_STYLE = `
input:is([type="search"], [type="text"], [type="datetime-local"]), select {
  width: 100%; padding: 0.5rem 0.75rem; font: inherit; color: inherit;
  background: var(--surface); border: 1px solid var(--line-strong); border-radius: 6px;
}
::placeholder { color: var(--muted); opacity: 1; }
`;

/** Forms, and what is said about what was typed. */
export const FORM_STYLE = `${INPUT_STYLE}
.ask { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 14rem), 1fr)); gap: 0.75rem 1rem; align-items: end; }
.field { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.25rem; }
.field:has(button) { display: flex; align-items: center; gap: 1rem; }
.field label { font-size: 0.875rem; color: var(--muted); }
.ask button {
  padding: 0.5rem 1.25rem; font: inherit; font-weight: 600; color: var(--surface); cursor: pointer;
  background: var(--accent); border: 1px solid var(--accent); border-radius: 6px;
}
.ask input, .ask select, .ask button { min-height: 2.75rem; }
.notice { padding: 0.75rem 1rem; border-left: 3px solid var(--tone, var(--line-strong)); background: var(--surface); border-radius: 0 var(--radius) var(--radius) 0; }
`;

/** Terms and their values. */
export const FACTS_STYLE = `
.facts { display: grid; grid-template-columns: minmax(8rem, max-content) minmax(0, 1fr); gap: 0.5rem 1.5rem; }
.facts dt { color: var(--muted); font-size: 0.9375rem; }
.facts dd { min-width: 0; }
@media (max-width: 36rem) {
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts dd { margin-bottom: 0.75rem; }
}
`;
