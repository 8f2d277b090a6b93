/** The sidebar of a reference: search, and links to groups and entries. */
import { type Html, template } from './templates.ts';

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

export const referenceContents = template<{
  readonly search: string;
  readonly groups: readonly ContentsGroup[];
}>(`<nav class="contents" aria-label="Contents">
<div class="search needs-js">
<label for="filter"><%= it.search %></label>
<input id="filter" type="search" autocomplete="off" spellcheck="false" data-filter>
<p class="count" role="status" data-filter-count></p>
</div>
<% for (const group of it.groups) { %>
<div data-group>
<h2><a href="#<%= group.id %>"><%= group.title %></a></h2>
<ul>
<% for (const link of group.links) { %>
<li data-link-to="<%= link.anchor %>"><a href="#<%= link.anchor %>"><% if (link.mark) { %><span class="verb"><%= link.mark %></span> <% } %><%= link.label %></a></li>
<% } %>
</ul>
</div>
<% } %>
</nav>
`);

export const nothingFits = '<p class="empty" data-filter-none hidden>Nothing fits.</p>\n' as Html;
