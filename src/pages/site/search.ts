/**
 * `/search`: finds everything public by parts of names, ids, paths and commands. A key leads to it from every page;
 * over each page, its script would be the fifth part of a small one.
 */

import { counted, shownCount } from '../../base/counts.ts';
import type { RouteDescription } from '../../protocol/route-description.ts';
import type { GraphModel } from '../graph/model.ts';
import type { CommandReference } from '../reference/cli-reference.ts';
import { anchorOf, isPage } from '../reference/contents.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Content, type Html, html, NO_HTML } from '../ui/html.ts';
import { capabilityAddress, nameInCell, nameInLink, sovereignAddress } from '../ui/values.ts';

/** What the program itself offers: pages, routes and commands. */
interface Entry {
  readonly kind: 'Pages' | 'Commands' | 'Routes';
  readonly href: string;
  readonly label: string;
  readonly about: string;
  /** What is searched, in lower case. */
  readonly lower: { readonly label: string; readonly all: string };
}

interface Hit {
  readonly href: string;
  readonly label: Content;
  readonly about: string;
}

interface Group {
  readonly title: string;
  readonly hits: readonly Hit[];
  /** How many there are besides those that are shown. */
  readonly more: number;
}

export const LONGEST_SEARCH = 200;
const MOST_HITS = 8;

type Described = Omit<Entry, 'lower'>;

export function searchEntries(
  routes: readonly RouteDescription[],
  { name, commands }: CommandReference,
): Entry[] {
  return [
    ...routes.map((route): Described => {
      const { method, path, summary: about } = route;
      return isPage(route)
        ? { kind: 'Pages', href: `.${path}`, label: path, about }
        : {
            kind: 'Routes',
            href: `./api-reference#${anchorOf(route)}`,
            label: `${method} ${path}`,
            about,
          };
    }),
    ...commands.map(({ path, description }): Described => {
      const href = `./cli-reference#${path.replaceAll(' ', '-')}`;
      return { kind: 'Commands', href, label: `${name} ${path}`, about: description };
    }),
  ].map((entry) => {
    const label = entry.label.toLowerCase();
    return { ...entry, lower: { label, all: `${label} ${entry.about.toLowerCase()}` } };
  });
}

export function searchPage(asked: string, entries: readonly Entry[], graph: GraphModel): HtmlPage {
  const text = asked.trim().slice(0, LONGEST_SEARCH);
  return renderPage({
    title: 'Search',
    path: '/search',
    networkName: graph.ownName,
    body: html`<form class="ask" method="get" action="./search" role="search">
<p class="field"><label for="q">Name, id, path or command</label><input type="search" id="q" name="q" value="${text}" maxlength="${LONGEST_SEARCH}" autocomplete="off" spellcheck="false" data-search-field></p>
<p class="field"><button type="submit">Search</button></p>
</form>
${results(text, text === '' ? [] : groupsFor(text.toLowerCase(), text, entries, graph))}`,
    connects: true,
  });
}

function groupsFor(
  lower: string,
  text: string,
  entries: readonly Entry[],
  { nodes, treaties }: GraphModel,
): Group[] {
  const words = [...new Set(lower.split(/\s+/))];
  const fits = (text: string) => words.every((word) => text.includes(word));
  const fitting = entries
    .filter(({ lower }) => fits(lower.all))
    .toSorted((a, b) => Number(fits(b.lower.label)) - Number(fits(a.lower.label)));
  const of = (kind: Entry['kind']) => fitting.filter((entry) => entry.kind === kind);
  return [
    group('Pages', of('Pages'), (entry) => entry),
    group(
      'Sovereigns',
      nodes.filter(({ lower: name }) => fits(name)),
      ({ id, isOwn }) => ({
        href: sovereignAddress(id),
        label: html`<bdi>${nameInLink(id)}</bdi>`,
        about: isOwn ? 'This authority' : '',
      }),
    ),
    group(
      'Treaties',
      treaties.filter(({ lower: id }) => id.startsWith(lower)),
      ({ row: { treaty_id: id, from, to } }) => ({
        href: `./treaty?id=${encodeURIComponent(id)}`,
        label: nameInCell(id),
        about: `${nameInLink(from)} recognizes ${nameInLink(to)}`,
      }),
    ),
    group('Commands', of('Commands'), (entry) => entry),
    group('Routes', of('Routes'), (entry) => entry),
    group(LOOK_UP, /[\s/]/.test(text) ? [] : lookUps(text), (hit) => hit),
  ].filter(({ hits }) => hits.length > 0);
}

function group<Found>(title: string, found: readonly Found[], hitOf: (each: Found) => Hit): Group {
  return {
    title,
    hits: found.slice(0, MOST_HITS).map(hitOf),
    more: Math.max(0, found.length - MOST_HITS),
  };
}

const LOOK_UP = 'Look up';
/** The form of the id of an attestation. */
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** What only the authority can find, and only by its whole name. */
function lookUps(text: string): Hit[] {
  const label = html`<bdi>${nameInLink(text)}</bdi>`;
  const attestation = `./attestation?id=${encodeURIComponent(text)}`;
  return [
    { href: capabilityAddress(text), label, about: 'Agents with this capability' },
    ...(UUID.test(text) ? [{ href: attestation, label, about: 'Attestation with this id' }] : []),
  ];
}

function results(text: string, groups: readonly Group[]): Html {
  const found = groups
    .filter(({ title }) => title !== LOOK_UP)
    .reduce((sum, { hits, more }) => sum + hits.length + more, 0);
  const outcome = text === '' ? SEARCH_HINT : `${counted(found, 'match', 'matches')}.`;
  return html`<div class="found" id="found"><p class="small muted" role="status">${outcome}</p>
${groups.map(
  ({ title, hits, more }) => html`<h2>${title}</h2>
<ul>
${hits.map(
  ({ href, label, about }) => html`<li><a href="${href}">${label}</a> <span>${about}</span></li>`,
)}${
  more === 0
    ? NO_HTML
    : html`<li class="small muted">And ${shownCount(more)} more: narrow the search.</li>`
}</ul>`,
)}</div>`;
}

const SEARCH_HINT =
  'Type a part of a name, the beginning of an id, a path such as /join, or a command such as node join.';
