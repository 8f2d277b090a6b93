/** Numbers as dense lines: a label, how the number changed, the number, and what it is about. */

import { shownCount } from './counts.ts';
import { type Content, type Html, html, NO_HTML } from './html.ts';
import { capital } from './values.ts';

export type Tone = 'ok' | 'warn' | 'danger' | 'neutral';

export interface Stat {
  readonly label: string;
  /** The path of the value in the document. */
  readonly field: string;
  /** Null if not known. */
  readonly value: string | number | null;
  readonly note?: Content;
  readonly tone?: Tone;
  /** A small drawing of how the value changed. */
  readonly spark?: Html | undefined;
}

export function stats(rows: readonly Stat[]): Html {
  return html`<ul class="stats">
${rows.map(statItem)}</ul>`;
}

function statItem({ label, field, value, note = NO_HTML, tone = 'neutral', spark }: Stat): Html {
  const shown =
    value === null ? 'Not known' : typeof value === 'number' ? shownCount(value) : capital(value);
  return html`<li><span class="stat-label">${label}</span>${spark === undefined ? NO_HTML : html`<span class="spark">${spark}</span>`}<span class="stat-value ${tone}" data-stat="${field}"><strong>${shown}</strong> <small>${value === null ? NO_HTML : note}</small></span></li>`;
}

/** A bar of parts, each with its classes and its place in percent. */
export function bar(parts: readonly (readonly [names: string, x: number, width: number])[]): Html {
  return html`<svg class="bar" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true">${parts.map(([names, x, width]) => html`<rect class="${names}" x="${x}" width="${width}" height="3"/>`)}</svg>`;
}

export const STAT_STYLE = `
.stats { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); padding: 0; list-style: none; overflow: hidden; background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius); }
.stats li { display: grid; grid-template-columns: minmax(0, 1fr) auto; align-content: start; gap: 0 0.75rem; padding: 0.5rem 1rem; box-shadow: -1px -1px var(--line); }
.stat-label { font-size: 0.875rem; color: var(--muted); }
.stat-value { grid-column: 1; font-size: 1.25rem; line-height: 1.3; }
.stat-value small { font-size: 0.8125rem; color: var(--muted); }
.stat-value strong { color: var(--tone); }
`;
