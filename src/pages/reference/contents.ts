/** The sidebar of a reference: search, and links to groups and entries; and the items of its lists. */
import { type Content, type Html, html } from '../ui/html.ts';

export interface ContentsGroup {
  readonly id: string;
  readonly title: string;
  readonly links: readonly (readonly [anchor: string, label: Content])[];
}

export function referenceContents(search: string, groups: readonly ContentsGroup[]): Html {
  return html`<nav class="contents" aria-label="Contents">
<div class="search needs-js">
<label for="filter">${search}</label>
<input id="filter" type="search" autocomplete="off" spellcheck="false" data-filter>
<p class="count" role="status" data-filter-count></p>
</div>
${groups.map(
  ({ id, title, links }) => html`<div data-group>
<h2><a href="#${id}">${title}</a></h2>
<ul>${links.map(([anchor, label]) => html`<li><a href="#${anchor}">${label}</a></li>`)}</ul>
</div>`,
)}</nav>`;
}

/** Names and what is said about them; without the end tags that HTML leaves to the writer, because there are thousands. */
export function fieldList(fields: readonly (readonly [name: string, about: Content])[]): Html {
  return html`<dl class="fields">${fields.map(([name, about]) => html`<dt>${name}<dd>${about}`)}</dl>`;
}

export const nothingFits = html`<p class="empty" data-filter-none hidden>No matches.</p>`;
