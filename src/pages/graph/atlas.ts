/**
 * `/atlas`: explores the recognition graph [service-read-endpoints], [core-6-4]. Every query is a plain URL, so it
 * works without scripts and can be bookmarked and shared.
 */

import { counted, shownCount } from '../../base/counts.ts';
import type { TrustPath } from '../../protocol/rows/graph.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { badge, emptyState, facts, section, stateBadge } from '../ui/parts.ts';
import { type Column, table } from '../ui/table.ts';
import {
  atlasLink,
  nameInCell,
  nameInFull,
  nameLink,
  reference,
  sovereignAddress,
  trustAddress,
} from '../ui/values.ts';
import { type DrawnGraph, isTooLarge } from './drawing.ts';
import type { EdgeState, GraphModel, GraphNode } from './model.ts';
import { type Emphasis, graphToExplore, NO_EMPHASIS } from './section.ts';
import { stateField } from './tables.ts';

/** The query of the reader; empty texts are ignored. */
export interface AtlasQuestion {
  /** Part of a name. */
  readonly search: string;
  readonly state: EdgeState | null;
  readonly sovereign: string;
  readonly from: string;
  readonly to: string;
}

interface AtlasAnswer {
  /** Null when the query does not name two sovereigns. */
  readonly path: TrustPath | null;
  readonly graphDigest: string;
}

const MOST_LISTED = 100;
/** How many names the form of a path suggests. */
const MOST_SUGGESTED = 1000;

export function atlasPage(
  model: DrawnGraph,
  question: AtlasQuestion,
  answer: AtlasAnswer,
): HtmlPage {
  const isEmpty = model.nodes.length === 0;
  const selected = model.named(question.sovereign);
  const found = foundSovereigns(model, question);
  const emphasis = emphasisOf(model, question, answer, selected, found);
  const isUnknown = question.sovereign !== '' && selected === undefined;
  const center = selected ?? model.node(model.ownName) ?? model.nodes[0];
  const drawing = isUnknown && isTooLarge(model) ? '' : graphToExplore(model, emphasis, center);
  const search = isEmpty ? '' : searchForm(question, found.length, model.nodes.length);
  return renderPage({
    title: 'Atlas',
    lede: 'Explore who recognizes whom, the evidence against it, and the paths of trust between sovereigns.',
    path: '/atlas',
    networkName: model.ownName,
    body: html`${section('explore', 'Explore', html`${search}${drawing}`)}
${selectedSection(question, selected)}
${isEmpty ? '' : html`${pathSection(model, question, answer.path)}${section('list', 'Sovereigns', listOf(found))}`}
${section('digest', 'This graph', graphFacts(model, answer))}`,
  });
}

function searchForm({ search, state: chosen }: AtlasQuestion, found: number, all: number): Html {
  return html`<form class="ask" method="get" action="./atlas" role="search">
<p class="field"><label for="q">Sovereign</label><input type="search" id="q" name="q" value="${search}" placeholder="part of a name" autocomplete="off" spellcheck="false"></p>
${stateField(chosen)}<p class="field"><button type="submit">Find</button>${search === '' && chosen === null ? '' : html` <a href="./atlas">Clear</a>`}</p>
</form>
<p class="small muted" id="found" role="status" data-all="${all}">${found === all ? '' : `${shownCount(found)} of `}${counted(all, 'sovereign')}.</p>`;
}

function graphFacts({ document: { summary } }: GraphModel, { graphDigest }: AtlasAnswer): Html {
  return html`${facts([
    ['Graph digest', html`<span class="id">${graphDigest}</span>`],
    ['Treaties in force', summary.active_edge_count],
    ['Revoked trust material', summary.revoked_trust_material_count],
  ])}
<p class="small muted">Raw data: <a href="./atlas.json">atlas.json</a>. The digest covers the canonical <a href="./recognition-graph">recognition-graph</a>: equal digests mean equal graphs.</p>`;
}

function foundSovereigns({ nodes }: GraphModel, { search, state }: AtlasQuestion) {
  const part = search.toLowerCase();
  const has = (edges: GraphNode['outgoing']) =>
    edges.some(({ lifecycle_state }) => lifecycle_state === state);
  return nodes.filter(
    ({ lower, outgoing, incoming }) =>
      lower.includes(part) && (state === null || has(outgoing) || has(incoming)),
  );
}

/** Emphasizes the requested path, else the selected sovereign, else the matches, where all are drawn. */
function emphasisOf(
  model: GraphModel,
  question: AtlasQuestion,
  { path }: AtlasAnswer,
  selected: GraphNode | undefined,
  found: readonly GraphNode[],
): Emphasis {
  if (isTooLarge(model)) return NO_EMPHASIS;
  if (path !== null && path.path.length > 0) return emphasizedPath(model, path);
  if (selected !== undefined) {
    const { links } = selected;
    const nodes = new Set([selected, ...links.flatMap(({ from, to }) => [from, to])]);
    return { nodes, links: new Set(links), selected };
  }
  if (question.search === '' && question.state === null) return NO_EMPHASIS;
  const nodes = new Set(found);
  const links = model.links.filter(
    ({ from, to, treaties }) =>
      nodes.has(from) &&
      nodes.has(to) &&
      (question.state === null || treaties.some((each) => each.lifecycle_state === question.state)),
  );
  return { nodes, links: new Set(links), selected: null };
}

function emphasizedPath(model: GraphModel, { path }: TrustPath): Emphasis {
  const steps = new Set(path.map(({ treaty_id }) => treaty_id));
  const links = model.links.filter(({ treaties }) =>
    treaties.some(({ treaty_id }) => steps.has(treaty_id)),
  );
  const nodes = new Set(links.flatMap(({ from, to }) => [from, to]));
  return { nodes, links: new Set(links), selected: null };
}

function selectedSection({ sovereign }: AtlasQuestion, node: GraphNode | undefined): Html {
  if (sovereign === '') return NO_HTML;
  return node === undefined ? unknownSovereign(sovereign) : sovereignPanel(node);
}

function unknownSovereign(name: string): Html {
  return html`<section class="section" id="selected" aria-labelledby="selected-heading">
<h2 id="selected-heading" class="visually-hidden">Sovereign not found</h2>
<p class="notice warn">No treaty names the sovereign <bdi>${nameInCell(name)}</bdi>.</p>
</section>`;
}

/** Its treaties and revocations are on its own page. */
function sovereignPanel(node: GraphNode): Html {
  const { id, isOwn, outgoing, incoming, revocations } = node;
  const page = sovereignAddress(id);
  const treaties = (edges: GraphNode['outgoing'], part: string) =>
    html`<a href="${page}#${part}-heading">${counted(edges.length, 'treaty', 'treaties')}</a>`;
  return html`<section class="section" id="selected" aria-labelledby="selected-heading" tabindex="-1">
<div class="section-head"><h2 id="selected-heading"><bdi class="full-name">${nameInFull(id)}</bdi>${isOwn ? html` ${OWN_BADGE}` : NO_HTML}</h2><a href="./atlas">Clear selection</a></div>
${facts([
  ['Recognizes', treaties(outgoing, 'out')],
  ['Is recognized by', treaties(incoming, 'in')],
  ['Linked sovereigns', neighbors(node)],
  ...(isOwn
    ? []
    : [
        [
          'Has revoked',
          html`<a href="${page}#revoked-heading">${counted(revocations.length, 'attestation')}</a>`,
        ] as const,
      ]),
])}
<p><a href="${page}">Open its page</a>${reference(id) === id ? questions(id) : NO_HTML}</p></section>`;
}

/** Only for names that fit in a URL. */
function questions(id: string): Html {
  return html` · <a href="${trustAddress(id, '')}">See whom it trusts</a> · <a href="${trustAddress('', id)}">See who trusts it</a>`;
}

function neighbors(node: GraphNode): number {
  return new Set(node.links.map(({ from, to }) => (from === node ? to : from))).size;
}

function pathSection(model: GraphModel, question: AtlasQuestion, path: TrustPath | null): Html {
  return html`<section class="section" aria-labelledby="path">
<h2 id="path">Trust path</h2>
<form class="ask" method="get" action="./atlas#path">
<p class="field"><label for="from">Trusting sovereign</label><input type="text" id="from" name="from" list="names" value="${question.from}" required autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="to">Trusted sovereign</label><input type="text" id="to" name="to" list="names" value="${question.to}" required autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Show the path</button></p>
</form>
<datalist id="names">${suggestions(model)}</datalist>
${path === null ? pathHint(question) : pathResult(model, path)}</section>`;
}

const suggested = new WeakMap<GraphModel['nodes'], Html>();

/** The same on every page about a graph, and half of it. */
function suggestions({ nodes }: GraphModel): Html {
  const known = suggested.get(nodes);
  if (known !== undefined) return known;
  const options = html`${nodes.slice(0, MOST_SUGGESTED).map(nameOption)}`;
  suggested.set(nodes, options);
  return options;
}

function nameOption({ id }: GraphNode): Html {
  const [value, label] = [reference(id), nameInCell(id)];
  // Without its end tag, which HTML leaves to the writer: there are many.
  return html`<option value="${value}">${label === value ? '' : label}`;
}

function pathHint({ from, to }: AtlasQuestion): Html {
  const text =
    from === '' && to === ''
      ? 'Choose two sovereigns to see whether the first trusts the second over a path of active treaties.'
      : 'Choose the second sovereign as well.';
  return html`<p class="small muted" id="path-result">${text}</p>`;
}

/** The drawing shows the path; its treaties and what else matters are on the page of the question. */
function pathResult(model: GraphModel, path: TrustPath): Html {
  const { from, to, trusted, reason } = path;
  const [tone, word] = trusted ? ['ok', 'Trusted'] : ['warn', 'Not trusted'];
  return html`<div class="path-result" id="path-result">
<p class="notice ${tone}"><strong>${word}</strong> <code>${reason}</code><br>${sentenceOf(model, path)}</p>
<p class="small"><a href="${trustAddress(from, to)}">Why, until when, and what would change it</a></p>
</div>`;
}

function sentenceOf(model: GraphModel, { from, to, reason, hop_count }: TrustPath): string {
  if (reason === 'active_treaty_path') {
    return hop_count === 1
      ? 'An active treaty links them directly.'
      : `The shortest path takes ${hop_count} active treaties.`;
  }
  if (reason === 'direct_treaty_revoked') {
    return 'No path of active treaties connects them, and the direct treaty has been revoked or replaced.';
  }
  if (from === to) return 'Both are the same sovereign; a path needs two different ones.';
  const unknown = [from, to].filter((name) => model.node(name) === undefined);
  if (unknown.length > 0) return `No treaty names ${unknown.map(nameInCell).join(' or ')}.`;
  return 'No path of active treaties connects them.';
}

function listOf(found: readonly GraphNode[]): Html {
  if (found.length === 0) {
    return emptyState('No matching sovereign. Type another part of a name, or choose any state.');
  }
  const left = Math.max(0, found.length - MOST_LISTED);
  return table({
    id: 'sovereigns',
    caption: `Sorted by name.${left > 0 ? ` ${shownCount(left)} more are not shown: search for part of a name.` : ''}`,
    columns: LIST_COLUMNS,
    rows: found.slice(0, MOST_LISTED),
  });
}

const LIST_COLUMNS: readonly Column<GraphNode>[] = [
  {
    head: 'Sovereign',
    kind: 'name',
    isHead: true,
    cell: ({ id, isOwn }) =>
      html`<span>${nameLink(`${atlasLink(id)}#selected`, id)}${isOwn ? html` ${OWN_BADGE}` : ''}</span>`,
  },
  { head: 'Recognizes', kind: 'number', cell: ({ outgoing }) => outgoing.length },
  { head: 'Recognized by', kind: 'number', cell: ({ incoming }) => incoming.length },
  {
    head: 'Treaty states',
    cell: (node) =>
      html`<span>${statesOf(node).map((state) => html`${badge(stateBadge(state))} `)}</span>`,
  },
  { head: 'Revocations', kind: 'number', cell: ({ revocations }) => revocations.length },
];

const OWN_BADGE = badge({ tone: 'neutral', word: 'this authority' });

function statesOf({ outgoing, incoming }: GraphNode): EdgeState[] {
  const present = new Set([...outgoing, ...incoming].map((edge) => edge.lifecycle_state));
  return LIFECYCLE_STATES.filter((state) => present.has(state));
}
