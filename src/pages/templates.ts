/** Escaping templates: `<%= %>` inserts a value as text, never as markup. */
import { Eta } from 'eta/core';

declare const trusted: unique symbol;

/** Markup that a template rendered. A template includes other markup with `<%~ %>`. */
export type Html = string & { readonly [trusted]: true };

const eta = new Eta({ autoEscape: true, autoTrim: [false, 'nl'], varName: 'it', useWith: false });

/** Compiles a template once; its data is called `it`. */
export function template<Data extends object>(source: string): (data: Data) => Html {
  const compiled = eta.compile(source);
  return (data) => eta.render(compiled, data) as Html;
}

export const NO_HTML = '' as Html;

export function joined(pieces: readonly Html[]): Html {
  return pieces.join('') as Html;
}

/** Data for a script of the page: the content of a `<script type="application/json">`. */
export function scriptData(value: unknown): Html {
  return JSON.stringify(value).replaceAll('<', '\\u003c') as Html;
}
