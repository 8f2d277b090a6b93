/** Cells of tables with more than one thing in them. They are one element, because narrow tables lay out each. */

import { type Content, type Html, html, NO_HTML } from '../pages/ui/html.ts';
import { badge } from '../pages/ui/parts.ts';

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
