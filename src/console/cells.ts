/** Cells of tables with more than one thing in them. They are one element, because narrow tables lay out each. */

import { type Content, type Html, html, NO_HTML } from '../pages/ui/html.ts';
import { badge } from '../pages/ui/parts.ts';
import { capital } from '../pages/ui/values.ts';

/** The second line is smaller, and left out when it is empty; a cell of nothing is empty. */
export function twoLines(first: Content, second: Content): Html {
  if (first === '' && second === '') return NO_HTML;
  const below =
    second === '' || second === NO_HTML
      ? NO_HTML
      : html`<span class="small muted">${second}</span>`;
  return html`<span class="lines"><span>${first}</span>${below}</span>`;
}

/** A state, and below it when or why it was reached. */
export function stateWith(tone: string, word: string, note: Content): Html {
  return twoLines(badge({ tone, word }), note);
}

/** A filter that takes any text, and proposes some. */
export function textFilter(
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

/** The choices of a filter; the empty one does not filter. */
export function filterOptions(words: readonly string[], chosen: string, any = ''): Html {
  return html`<option value="${any}">Any</option>${words.map(
    (word) =>
      html`<option value="${word}"${word === chosen ? html` selected` : NO_HTML}>${capital(word)}</option>`,
  )}`;
}
