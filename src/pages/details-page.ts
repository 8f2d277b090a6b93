/** What the pages of single treaties, sovereigns, attestations and capabilities have in common. */
import type { HtmlPage } from '../http/reply.ts';
import { browserScript } from './browser-script.ts';
import { FORM_STYLE } from './form-style.ts';
import { type PageParts, renderPage } from './frame.ts';
import { GRAPH_STYLE } from './graph-style.ts';
import { type Content, type Html, html } from './html.ts';
import { inlineCode } from './inline-code.ts';
import { TABLE_STYLE } from './table.ts';

const STYLE = inlineCode(`${GRAPH_STYLE}${FORM_STYLE}${TABLE_STYLE}
.plain { display: grid; gap: 0.25rem; padding: 0; list-style: none; }
.history { display: grid; gap: 0.5rem; padding-inline-start: 1.25rem; }
`);
const SCRIPT = browserScript('details');

export function detailsPage(
  parts: Pick<
    PageParts,
    'title' | 'heading' | 'status' | 'path' | 'networkName' | 'body' | 'forms'
  >,
): HtmlPage {
  return renderPage({ ...parts, style: STYLE, script: SCRIPT });
}

/** A term, and what it is here. */
export type Fact = readonly [term: string, value: Content];

export function facts(rows: readonly Fact[]): Html {
  return html`<dl class="facts">
${rows.map(
  ([term, value]) => html`<dt>${term}</dt><dd>${value}</dd>
`,
)}</dl>
`;
}

export function section(id: string, heading: string, content: Html): Html {
  return html`<section class="section" aria-labelledby="${id}-heading">
<h2 id="${id}-heading">${heading}</h2>
${content}</section>
`;
}

/** Where no id is given: a field for one. */
export function askPage(what: string, path: string, networkName: string): HtmlPage {
  return detailsPage({
    title: `Find ${what}`,
    path,
    networkName,
    forms: true,
    body: html`<form class="ask" method="get" action=".${path}" role="search">
<p class="field"><label for="id">Id</label><input type="text" id="id" name="id" required autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Find</button></p>
</form>
`,
  });
}
