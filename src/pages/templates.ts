/** Templates as texts, for the references: `<%= %>` inserts a value as text, `<%~ %>` markup as it is. */
import { Eta } from 'eta/core';
import { Html, html } from './html.ts';

export type { Html } from './html.ts';

const eta = new Eta({ autoEscape: true, autoTrim: [false, 'nl'], varName: 'it', useWith: false });

/** Compiles a template once; its data is called `it`. */
export function template<Data extends object>(source: string): (data: Data) => Html {
  const compiled = eta.compile(source);
  return (data) => Html.trusted(eta.render(compiled, data));
}

export function joined(pieces: readonly Html[]): Html {
  return html`${pieces}`;
}
