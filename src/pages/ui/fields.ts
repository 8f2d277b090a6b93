/** Fields of forms that ask for something by a URL. */
import { type Html, html, NO_HTML } from './html.ts';
import { capital } from './values.ts';

export type Choice = readonly [value: string, text: string];

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
