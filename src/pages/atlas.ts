/**
 * `/atlas`: explores the recognition graph [service-read-endpoints], [core-6-4]. Every query is a plain URL, so it
 * works without scripts and can be bookmarked and shared.
 */

import type { BlastRadiusRow, EdgeRow, TrustPath } from '../protocol/rows/graph.ts';
import { LIFECYCLE_STATES } from '../protocol/rows/treaty.ts';
import { browserScript } from './browser-script.ts';
import { counted, shownCount } from './counts.ts';
import { section } from './details-page.ts';
import { emptyState } from './empty-state.ts';
import { type HtmlPage, renderPage } from './frame.ts';
import { type DrawnGraph, isTooLarge } from './graph-drawing.ts';
import type { EdgeState, GraphModel, GraphNode } from './graph-model.ts';
import { atlasLink, nameInCell, nameInFull, reference } from './graph-names.ts';
import { type Emphasis, NO_EMPHASIS } from './graph-picture.ts';
import { graphToExplore } from './graph-section.ts';
import { GRAPH_STYLE } from './graph-style.ts';
import { badge, blastRadiusTable, edgesTable, stateBadge, stateField } from './graph-tables.ts';
import { type Content, type Html, html, NO_HTML } from './html.ts';
import { inlineStyle } from './inline-code.ts';
import { PATH_DRAWING_STYLE, pathDrawing } from './path-drawing.ts';
import { ADDED_STYLE, FACTS_STYLE, FORM_STYLE } from './style.ts';
import { type Column, type RowPage, rowPage, TABLE_STYLE, table } from './table.ts';
import { trustLink } from './trust-form.ts';
import {
  followedText,
  nameLink,
  sovereignAddress,
  sovereignLink,
  timeText,
  treatyLink,
} from './values.ts';

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

const STYLE =
  inlineStyle(`${FORM_STYLE}${FACTS_STYLE}${GRAPH_STYLE}${TABLE_STYLE}${ADDED_STYLE}${PATH_DRAWING_STYLE}
.full-name { display: block; max-width: 60rem; }
#selected { padding: clamp(1rem, 2vw, 1.5rem); border: 1px solid var(--line-strong); border-radius: var(--radius); }
#selected:has(> .notice) { padding: 0; border: 0; }
@media (max-width: 30rem) {
  #selected { padding: 0; border: 0; }
  #sovereigns tbody tr > * { grid-template-columns: 6rem minmax(0, 1fr); }
}
.path-result { display: grid; gap: 1.25rem; }
`);
const SCRIPT = browserScript('atlas');

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
    style: STYLE,
    script: SCRIPT,
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
  return html`<dl class="facts">
<dt>Graph digest</dt><dd class="id">${graphDigest}</dd>
<dt>Treaties in force</dt><dd>${summary.active_edge_count}</dd>
<dt>Revoked trust material</dt><dd>${summary.revoked_trust_material_count}</dd>
</dl>
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

function sovereignPanel(node: GraphNode): Html {
  const { id, isOwn, outgoing, incoming, revocations } = node;
  const named = encodeURIComponent(reference(id));
  const link = atlasLink(id);
  const ownPage = sovereignAddress(id);
  return html`<section class="section" id="selected" aria-labelledby="selected-heading" tabindex="-1">
<div class="section-head"><h2 id="selected-heading"><bdi class="full-name">${nameInFull(id)}</bdi>${isOwn ? html` ${OWN_BADGE}` : NO_HTML}</h2><a href="./atlas">Clear selection</a></div>
<dl class="facts">
<dt>Recognizes</dt><dd>${counted(outgoing.length, 'treaty', 'treaties')}</dd>
<dt>Is recognized by</dt><dd>${counted(incoming.length, 'treaty', 'treaties')}</dd>
<dt>Linked sovereigns</dt><dd>${neighbors(node)}</dd>
</dl>
<p><a href="${ownPage}">Open its page</a> · <a href="${link}&amp;from=${named}#path">See whom it trusts</a> · <a href="${link}&amp;to=${named}#path">See who trusts it</a></p>
<h3>Whom it recognizes</h3>
${
  outgoing.length === 0
    ? emptyState('It has issued no treaty.')
    : firstTreaties('outgoing', 'from', outgoing, `${ownPage}#out-heading`)
}<h3>Who recognizes it</h3>
${
  incoming.length === 0
    ? emptyState('No treaty recognizes it.')
    : firstTreaties('incoming', 'to', incoming, `${ownPage}#in-heading`)
}${isOwn ? NO_HTML : evidence(revocations, `${ownPage}#revoked-heading`)}</section>`;
}

function evidence(revocations: readonly BlastRadiusRow[], address: string): Html {
  return html`<h3>Attestations it has revoked</h3>
${revocations.length === 0 ? emptyState('No imported feed revokes any.') : firstRevocations(revocations, address)}`;
}

/** `own` is the column of the sovereign itself, which is the same in all rows. */
function firstTreaties(
  table: string,
  own: 'from' | 'to',
  treaties: readonly EdgeRow[],
  address: string,
): Html {
  const shown = rowPage(treaties, 1);
  const sentence = own === 'from' ? 'Treaties it has issued.' : 'Treaties that recognize it.';
  return edgesTable(table, captionOf(sentence, shown, address), shown.rows, { without: own });
}

function firstRevocations(revocations: readonly BlastRadiusRow[], address: string): Html {
  const shown = rowPage(revocations, 1);
  const sentence =
    'As its imported feed says, with the sovereigns whose active treaties recognize it.';
  return blastRadiusTable(captionOf(sentence, shown, address), shown.rows);
}

/** Links to the page that lists the remaining rows. */
function captionOf<Row>(sentence: string, { rows, all }: RowPage<Row>, address: string): Content {
  if (rows.length === all) return sentence;
  return html`${sentence} The first ${rows.length} of ${all}: <a href="${address}">all of them</a>.`;
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

function pathResult(model: GraphModel, path: TrustPath): Html {
  const { trusted, reason } = path;
  const [tone, word] = trusted ? ['ok', 'Trusted'] : ['warn', 'Not trusted'];
  return html`<div class="path-result" id="path-result">
<p class="notice ${tone}"><strong>${word}</strong> <code>${reason}</code><br>${sentenceOf(model, path)}</p>
${isTooLarge(model) ? pathDrawing(path) : ''}${
  path.path.length === 0
    ? ''
    : html`<ol class="path-steps">
${path.path.map(pathStep)}</ol>`
}<p class="small"><a href="${trustLink({ from: path.from, to: path.to, asOf: '', without: [] })}">Why, until when, and what would change it</a></p>
</div>`;
}

function pathStep(edge: EdgeRow): Html {
  const { from, to, lifecycle_state, valid_from, expires_at, treaty_id } = edge;
  return html`<li><p>${sovereignLink(from)} recognizes ${sovereignLink(to)} ${badge(stateBadge(lifecycle_state))}</p><p class="small muted">From ${timeText(valid_from)} until ${timeText(expires_at)}.${followedText(edge)} Treaty <span class="id">${treatyLink(treaty_id)}</span></p></li>`;
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
