import { inlineStyle } from './inline-code.ts';
import { CODE_STYLE, FACTS_STYLE, INPUT_STYLE } from './style.ts';

/** Style of the two references, in addition to the shared style: a sidebar, and entries with fields. */
export const REFERENCE_STYLE = inlineStyle(`${FACTS_STYLE}${INPUT_STYLE}${CODE_STYLE}
.search { display: grid; gap: 0.25rem; max-width: 34rem; }
.search label { font-size: 0.875rem; color: var(--muted); }
.reference { display: grid; grid-template-columns: 17rem minmax(0, 1fr); gap: 3rem; align-items: start; }
.contents { position: sticky; top: 4.75rem; display: grid; gap: 1rem; max-height: calc(100vh - 6rem); overflow-y: auto; margin-inline-start: -0.25rem; padding: 0.25rem 0.75rem 1rem 0.25rem; font-size: 0.875rem; }
.contents h2 { font-size: 0.8125rem; color: var(--muted); font-weight: 600; letter-spacing: 0; margin-bottom: 0.25rem; }
.contents ul { padding: 0; list-style: none; }
.contents li a { display: block; padding: 0.125rem 0; color: var(--ink); text-decoration: none; }
.contents li a:hover { color: var(--accent); text-decoration: underline; }
.contents .verb { color: var(--muted); font-family: var(--mono); font-size: 0.6875rem; }
.entries { display: grid; grid-template-columns: minmax(0, 1fr); gap: 3rem; }
.entries > section { display: grid; grid-template-columns: minmax(0, 1fr); gap: 1rem; }
.entry { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.75rem; padding: 1.125rem 1.25rem; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.entry:target { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
.entry-head { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 0.25rem 1rem; }
.entry h3 { font-family: var(--mono); font-size: 0.9375rem; font-weight: 600; }
.entry h3 a { color: inherit; text-decoration: none; }
.entry h3 a:hover { text-decoration: underline; }
.entry > .code { white-space: pre-wrap; }
.entry > p::first-letter { text-transform: uppercase; }
.entry h4 { color: var(--muted); font-weight: 600; font-size: 0.8125rem; }
.verb { font-weight: 600; }
h3 .verb { color: var(--accent); margin-inline-end: 0.25rem; }
.entry .facts { font-size: 0.875rem; gap: 0.25rem 1.25rem; grid-template-columns: minmax(6.5rem, max-content) minmax(0, 1fr); }
.entry .facts dt { font-size: inherit; }
.notes { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.5rem; color: var(--muted); font-size: 0.8125rem; line-height: 1.6; }
.notes pre { font-size: inherit; white-space: pre-wrap; }
.notes .fields { font-size: inherit; }
.fields { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 7fr); column-gap: 1.25rem; border-top: 1px solid var(--line); font-size: 0.875rem; }
.fields > * { padding-block: 0.375rem; border-bottom: 1px solid var(--line); }
.fields > :last-of-type { border-bottom: 0; }
.fields dt { font-family: var(--mono); font-size: 0.875em; color: inherit; }
.fields dd { margin-inline-start: -1.25rem; padding-inline-start: 1.25rem; }
.fields small { color: var(--muted); font-size: inherit; }
.fields b { color: var(--accent); font-weight: 600; font-size: 0.8125rem; }
details { border-top: 1px solid var(--line); padding-top: 0.625rem; }
summary { padding-block: 0.125rem; cursor: pointer; color: var(--muted); font-size: 0.8125rem; font-weight: 600; width: fit-content; }
summary:hover { color: var(--ink); }
details[open] > summary { margin-bottom: 0.5rem; }
details .fields { border-top: 0; }
.example { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.875rem; }
.example figure { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0.25rem; }
.example figcaption { display: flex; justify-content: space-between; align-items: end; min-height: 1.75rem; color: var(--muted); font-size: 0.8125rem; font-weight: 600; }
.example pre.code { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.8125rem; }
.copy { padding: 0.125rem 0.625rem; border: 1px solid var(--line-strong); border-radius: 6px; background: none; color: var(--muted); font: inherit; cursor: pointer; }
.copy:hover { color: var(--ink); }
.count { font-size: 0.8125rem; color: var(--muted); }
@media (max-width: 60rem) {
  .reference { grid-template-columns: minmax(0, 1fr); gap: 2rem; }
  .contents { position: static; display: flex; flex-wrap: wrap; gap: 0.5rem 1.25rem; max-height: none; margin: 0; padding: 0; }
  .contents .search { flex: 1 0 100%; max-width: none; margin-bottom: 0.5rem; }
  .contents > div ul { display: none; }
  .contents h2 { margin: 0; padding-block: 0.25rem; }
}
@media (max-width: 36rem) {
  .fields { grid-template-columns: minmax(0, 1fr); }
  .fields dt { padding-bottom: 0.125rem; border: 0; }
  .fields dd { margin: 0; padding: 0 0 0.375rem; }
  .entry .facts { grid-template-columns: 4rem minmax(0, 1fr); }
  .entry { padding: 1rem; }
}
`);
