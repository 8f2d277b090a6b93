/** The sidebar of a reference: search, and links to groups and entries; and the items of its lists. */
import { isOperatorRoute, type RouteDescription } from '../../protocol/route-description.ts';
import { type Content, type Html, html } from '../ui/html.ts';

interface ContentsGroup {
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

/** Groups routes for pages, in the order of the route table. */

export interface RouteGroup<Given extends RouteDescription = RouteDescription> {
  readonly id: string;
  readonly title: string;
  readonly note: string;
  readonly routes: readonly Given[];
}

const GROUPS: readonly (Omit<RouteGroup, 'routes'> & {
  holds(route: RouteDescription): boolean;
})[] = [
  {
    id: 'node',
    title: 'Node',
    note: 'A node proves possession of its key with every request.',
    holds: ({ access }) => access === 'node',
  },
  {
    id: 'pages',
    title: 'Pages',
    note: 'For people, with the style and the script of all pages.',
    holds: (route) => isPage(route) || route.path.startsWith('/assets/'),
  },
  {
    id: 'health',
    title: 'Health',
    note: 'For probes and monitoring. Metrics require no authentication: restrict access in your deployment.',
    holds: ({ path, access }) => access === 'internal' || /^\/(healthz|readyz|health)$/.test(path),
  },
  {
    id: 'public',
    title: 'Public',
    note: 'Documents and state that anyone may read.',
    holds: ({ method, access }) => method === 'GET' && access.startsWith('public'),
  },
  {
    id: 'verification',
    title: 'Verification',
    note: 'Public. Nothing is stored: each answer depends only on the request and on public state.',
    holds: ({ access }) => access === 'public',
  },
  {
    id: 'operator',
    title: 'Operator',
    note: 'Signed with an operator key; some routes take only keys of the privileged tier.',
    holds: isOperatorRoute,
  },
];

/** Each route belongs to the first group that matches it. */
export function routeGroups<Given extends RouteDescription>(
  routes: readonly Given[],
): RouteGroup<Given>[] {
  const groupOf = (route: Given) => GROUPS.find(({ holds }) => holds(route));
  return GROUPS.map((group) => ({
    id: group.id,
    title: group.title,
    note: group.note,
    routes: routes.filter((route) => groupOf(route) === group),
  })).filter(({ routes: held }) => held.length > 0);
}

export function isPage({ answer }: RouteDescription): boolean {
  return 'contentType' in answer && String(answer.contentType).startsWith('text/html');
}

/** The anchor of a route in `/api-reference`: `POST /admin/invite` is at `post-admin-invite`. */
export function anchorOf({ method, path }: RouteDescription): string {
  const words = path.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '');
  return `${method.toLowerCase()}-${words === '' ? 'home' : words}`;
}
