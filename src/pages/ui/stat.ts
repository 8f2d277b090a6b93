/** Numbers as dense lines: a label, how the number changed, the number, and what it is about. */

import { shownCount } from './counts.ts';
import { type Content, type Html, html, NO_HTML } from './html.ts';
import type { Tone } from './parts.ts';
import { capital } from './values.ts';

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
