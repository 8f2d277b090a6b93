/** The sidebar of a reference: search, and links to groups and entries. */
import { type Html, html } from './html.ts';

export interface ContentsGroup {
  readonly id: string;
  readonly title: string;
  readonly links: readonly {
    readonly anchor: string;
    /** Shown before the label, smaller. */
    readonly mark: string;
    readonly label: string;
  }[];
}

export function referenceContents({
  search,
  groups,
}: {
  readonly search: string;
  readonly groups: readonly ContentsGroup[];
}): Html {
  return html`<nav class="contents" aria-label="Contents">
<div class="search needs-js">
<label for="filter">${search}</label>
<input id="filter" type="search" autocomplete="off" spellcheck="false" data-filter>
<p class="count" role="status" data-filter-count></p>
</div>
${groups.map(
  ({ id, title, links }) => html`<div data-group>
<h2><a href="#${id}">${title}</a></h2>
<ul>
${links.map(
  ({
    anchor,
    mark,
    label,
  }) => html`<li><a href="#${anchor}">${mark === '' ? '' : html`<span class="verb">${mark}</span> `}${label}</a></li>
`,
)}</ul>
</div>
`,
)}</nav>
`;
}

export const nothingFits = html`<p class="empty" data-filter-none hidden>No matches.</p>
`;
