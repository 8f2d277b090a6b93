/** Parts of which pages are made; a live one fetches itself when there is another version. */
import { shownCount } from '../../base/counts.ts';
import { type Content, type Html, html, NO_HTML } from './html.ts';
import { capital } from './values.ts';

export type Tone = 'ok' | 'warn' | 'danger' | 'neutral';

/** A term and its value. */
export type Fact = readonly [term: string, value: Content];

export function facts(rows: readonly Fact[]): Html {
  return html`<dl class="facts">
${rows.map(([term, value]) => html`<dt>${term}</dt><dd>${value}</dd>`)}</dl>`;
}

export function section(id: string, heading: string, content: Html): Html {
  return html`<section class="section" aria-labelledby="${id}-heading">
<h2 id="${id}-heading">${heading}</h2>
${content}</section>`;
}

/** The tones of the words that documents have for a state of a treaty or a feed; of others it is neutral. */
const STATE_TONES: Readonly<Record<string, Tone>> = {
  active: 'ok',
  expiring_soon: 'warn',
  revoked: 'danger',
  fresh: 'ok',
  watch: 'warn',
  stale: 'danger',
};

/** A word on a background whose color shows its meaning. */
export function badge({ tone, word }: { readonly tone: string; readonly word: string }): Html {
  return html`<span class="badge ${tone}">${word}</span>`;
}

export type StateBadge = ReturnType<typeof stateBadge>;

export function stateBadge(state: string) {
  return { word: state.replace('_', ' '), tone: STATE_TONES[state] ?? ('neutral' as const) };
}

export const TO_ISSUE = 'treaty issue NAME --key KEY --role ROLE';
export const TO_IMPORT = 'feed import FILE';

/** Says why there is nothing to show, and which command changes that. */
export function emptyState(text: Content, command?: string): Html {
  return html`<p class="empty">${text}${command === undefined ? '' : html` ${commandText(command)}`}</p>`;
}

export function folded(summary: string, content: Html): Html {
  return html`<details><summary>${summary}</summary>${content}</details>`;
}

/** A command in a sentence. Its lines break only before options: browsers also break lines after a hyphen. */
export function commandText(command: string): Html {
  const parts = `mesh-na ${command}`.split(/(?<= )(?=--)/);
  return html`<code>${parts.map((part, index) => html`${index > 0 ? html`<wbr>` : ''}${part}`)}</code>`;
}

/** The part of a page that changes while it is open. */
interface LiveRegion {
  /** The topic of the socket that names versions, or the address of a stream of events. */
  readonly source: string;
  /** Of the document that the page shows, as the messages about it name it; empty if it does not say. */
  readonly version: string;
  /** The least spread of its requests. */
  readonly spreadMs?: number;
  /** The least time between two of its requests. */
  readonly pauseMs?: number;
  /** How often it fetches itself besides, for what changes without another version. */
  readonly everyMs?: number;
}

export function liveRegion(
  { source, version, spreadMs = 0, pauseMs = 0, everyMs = 0 }: LiveRegion,
  content: Html,
): Html {
  return html`<div class="live-region" data-live="${source}" data-version="${version}" data-spread="${spreadMs}" data-pause="${pauseMs}" data-every="${everyMs}">
${content}</div>`;
}

/** The line at the top that says whether the page is live; its space is reserved so that nothing shifts. */
export const LIVE_STATUS = html`<div class="live-line needs-js"><p class="live-status" role="status" data-live-status="waiting">Connecting</p></div>`;

/** Marks a heading that would mislead once the connection is lost. */
export const WHEN_LOST = html`<span data-when-lost hidden></span>`;

/** A number as a dense line: a label, how it changed, the number, and what it is about. */
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

/** Fields of forms that ask for something by a URL. */

type Choice = readonly [value: string, text: string];

export function choiceField(
  name: string,
  label: string,
  choices: readonly Choice[],
  chosen: string,
): Html {
  return html`<p class="field"><label for="${name}">${label}</label><select id="${name}" name="${name}">${options(choices, chosen)}</select></p>`;
}

export function options(choices: readonly Choice[], chosen: string): Html[] {
  return choices.map(
    ([value, text]) =>
      html`<option value="${value}"${value === chosen ? html` selected` : NO_HTML}>${text}</option>`,
  );
}

/** The words of a document as choices of a filter, after the one that does not filter. */
export function wordChoices(words: readonly string[], any = ''): Choice[] {
  return [[any, 'Any'], ...words.map((word) => [word, capital(word)] as const)];
}

/** A field that takes any text, and proposes some. */
export function textField(
  name: string,
  label: string,
  value: string,
  proposed: readonly string[] = [],
): Html {
  const list = proposed.length === 0 ? NO_HTML : html` list="${name}-choices"`;
  return html`<p class="field"><label for="${name}">${label}</label><input type="text" id="${name}" name="${name}" value="${value}" autocomplete="off" spellcheck="false"${list}>${
    proposed.length === 0
      ? NO_HTML
      : html`<datalist id="${name}-choices">${proposed.map((choice) => html`<option value="${choice}"></option>`)}</datalist>`
  }</p>`;
}
