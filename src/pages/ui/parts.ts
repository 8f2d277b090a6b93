/** Parts of which pages are made. */
import { type Content, type Html, html } from './html.ts';

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

export interface StateBadge {
  readonly word: string;
  readonly tone: Tone;
}

export function stateBadge(state: string): StateBadge {
  return { word: state.replace('_', ' '), tone: STATE_TONES[state] ?? 'neutral' };
}

export const TO_ISSUE = 'treaty issue NAME --key KEY --role ROLE';
export const TO_IMPORT = 'feed import FILE';

/** Says why there is nothing to show, and which command changes that. */
export function emptyState(text: Content, command?: string): Html {
  return html`<p class="empty">${text}${command === undefined ? '' : html` ${commandText(command)}`}</p>`;
}

/** A command in a sentence. Its lines break only before options: browsers also break lines after a hyphen. */
export function commandText(command: string): Html {
  const parts = `mesh-na ${command}`.split(/(?<= )(?=--)/);
  return html`<code>${parts.map((part, index) => html`${index > 0 ? html`<wbr>` : ''}${part}`)}</code>`;
}
