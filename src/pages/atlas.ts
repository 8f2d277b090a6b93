/**
 * `/atlas`: the recognition graph to explore [service-read-endpoints], [core-6-4]. Every query is a plain
 * address, so it works without scripts and can be bookmarked and shared.
 */
import { sha256Hex } from '../crypto/digest.ts';
import type { HtmlPage } from '../http/reply.ts';
import { displayTime } from '../views/display-time.ts';
import type { TrustPath } from '../views/rows/graph.ts';
import { ATLAS_SCRIPT } from './atlas-script.ts';
import { ATLAS_STYLE } from './atlas-style.ts';
import { emptyState, graphSection } from './connectome.ts';
import { renderPage } from './frame.ts';
import { counted, type Emphasis, NO_EMPHASIS } from './graph-drawing.ts';
import {
  EDGE_STATES,
  type EdgeState,
  type GraphModel,
  type GraphNode,
  STATE_WORDS,
} from './graph-model.ts';
import { atlasLink, nameInCell, nameInFull, reference } from './graph-names.ts';
import { HIGHLIGHT_SCRIPT } from './graph-script.ts';
import { GRAPH_STYLE } from './graph-style.ts';
import { blastRadiusTable, edgesTable, type StateBadge, stateBadge } from './graph-tables.ts';
import { inlineCode } from './inline-code.ts';
import { type Html, NO_HTML, template } from './templates.ts';

/** The query of the reader; empty texts are ignored. */
export interface AtlasQuestion {
  /** Part of a name. */
  readonly search: string;
  readonly state: EdgeState | null;
  readonly sovereign: string;
  readonly from: string;
  readonly to: string;
}

export interface AtlasAnswer {
  /** Null when the query does not name two sovereigns. */
  readonly path: TrustPath | null;
  readonly graphDigest: string;
}

const STYLE = inlineCode(GRAPH_STYLE + ATLAS_STYLE);
const SCRIPT = inlineCode(HIGHLIGHT_SCRIPT + ATLAS_SCRIPT);

const MOST_LISTED = 1000;

/** The sovereign with the name, or with the digest of its long name. */
export function sovereignNamed(model: GraphModel, given: string): GraphNode | undefined {
  if (given === '') return undefined;
  const named = model.node(given);
  if (named !== undefined || !given.startsWith('sha256:')) return named;
  return model.nodes.find(({ id }) => `sha256:${sha256Hex(id)}` === given);
}

const main = template<{
  readonly question: AtlasQuestion;
  readonly states: readonly {
    readonly value: string;
    readonly word: string;
    readonly chosen: boolean;
  }[];
  readonly names: readonly { readonly value: string; readonly label: string }[];
  readonly picture: Html;
  readonly selected: Html;
  readonly path: Html;
  readonly list: Html;
  readonly found: string;
  readonly facts: readonly (readonly [string, string])[];
  readonly isEmpty: boolean;
}>(`<section class="section" aria-labelledby="explore-heading">
<h2 id="explore-heading">Explore</h2>
<% if (!it.isEmpty) { %>
<form class="ask" method="get" action="./atlas" role="search">
<p class="field"><label for="q">Sovereign</label><input type="search" id="q" name="q" value="<%= it.question.search %>" placeholder="part of a name" autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="state">With a treaty that is</label><select id="state" name="state"><option value="">of any state</option>
<% for (const state of it.states) { %><option value="<%= state.value %>"<% if (state.chosen) { %> selected<% } %>><%= state.word %></option>
<% } %></select></p>
<p class="field"><button type="submit">Find</button> <a href="./atlas">Show all</a></p>
</form>
<p class="small muted" id="found" role="status"><%= it.found %></p>
<% } %>
<%~ it.picture %>
</section>
<%~ it.selected %>
<% if (!it.isEmpty) { %>
<section class="section" aria-labelledby="path" >
<h2 id="path">Trust path</h2>
<form class="ask" method="get" action="./atlas#path">
<p class="field"><label for="from">Who evaluates</label><input type="text" id="from" name="from" list="names" value="<%= it.question.from %>" required autocomplete="off" spellcheck="false"></p>
<p class="field"><label for="to">Who is evaluated</label><input type="text" id="to" name="to" list="names" value="<%= it.question.to %>" required autocomplete="off" spellcheck="false"></p>
<p class="field"><button type="submit">Show the path</button></p>
</form>
<datalist id="names"><% for (const name of it.names) { %><option value="<%= name.value %>"><% if (name.label !== name.value) { %><%= name.label %><% } %></option><% } %></datalist>
<%~ it.path %>
</section>
<section class="section" aria-labelledby="list-heading">
<h2 id="list-heading">Sovereigns</h2>
<%~ it.list %>
</section>
<% } %>
<section class="section" aria-labelledby="digest-heading">
<h2 id="digest-heading">This graph</h2>
<dl class="facts">
<% for (const [label, value] of it.facts) { %>
<dt><%= label %></dt><dd class="id"><%= value %></dd>
<% } %>
</dl>
<p class="small muted">The same as data: <a href="./atlas.json">atlas.json</a>. The digest is that of the canonical <a href="./recognition-graph">recognition-graph</a>: equal digests are equal graphs.</p>
</section>
`);

export function atlasMain(model: GraphModel, question: AtlasQuestion, answer: AtlasAnswer): Html {
  const selected = sovereignNamed(model, question.sovereign);
  const found = model.nodes.filter((node) => isFound(node, question));
  const { summary } = model.document;
  return main({
    question,
    isEmpty: model.nodes.length === 0,
    states: EDGE_STATES.map((value) => ({
      value,
      word: STATE_WORDS[value],
      chosen: value === question.state,
    })),
    names: model.nodes
      .slice(0, MOST_LISTED)
      .map(({ id }) => ({ value: reference(id), label: nameInCell(id) })),
    picture: graphSection(model, emphasisOf(model, question, answer, selected, found)),
    selected: selectedSection(model, question, selected),
    path: pathSection(model, question, answer.path),
    list: listOf(found),
    found: `${found.length} of ${counted(model.nodes.length, 'sovereign')}.`,
    facts: [
      ['Graph digest', answer.graphDigest],
      ['Active treaties', String(summary.active_edge_count)],
      ['Revoked trust material', String(summary.revoked_trust_material_count)],
    ],
  });
}

function isFound({ id, outgoing, incoming }: GraphNode, { search, state }: AtlasQuestion): boolean {
  if (search !== '' && !id.toLowerCase().includes(search.toLowerCase())) return false;
  const has = (edges: GraphNode['outgoing']) =>
    edges.some(({ lifecycle_state }) => lifecycle_state === state);
  return state === null || has(outgoing) || has(incoming);
}

/** The requested path, else the sovereign, else the matches. */
function emphasisOf(
  model: GraphModel,
  question: AtlasQuestion,
  { path }: AtlasAnswer,
  selected: GraphNode | undefined,
  found: readonly GraphNode[],
): Emphasis {
  if (path !== null && path.path.length > 0) return emphasizedPath(model, path);
  if (selected !== undefined) {
    const links = model.links.filter(({ from, to }) => from === selected || to === selected);
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

const sovereignPanel = template<{
  readonly name: string;
  readonly facts: readonly (readonly [string, string])[];
  readonly pathFrom: string;
  readonly pathTo: string;
  readonly outgoing: Html;
  readonly incoming: Html;
  readonly evidence: Html;
}>(`<section class="section" id="selected" aria-labelledby="selected-heading" tabindex="-1">
<div class="section-head"><h2 id="selected-heading"><bdi class="full-name"><%= it.name %></bdi></h2><a href="./atlas">Let go</a></div>
<dl class="facts">
<% for (const [label, value] of it.facts) { %>
<dt><%= label %></dt><dd><%= value %></dd>
<% } %>
</dl>
<p><a href="<%= it.pathFrom %>">Find whom it trusts</a> · <a href="<%= it.pathTo %>">Find who trusts it</a></p>
<h3>Whom it recognizes</h3>
<%~ it.outgoing %>
<h3>Who recognizes it</h3>
<%~ it.incoming %>
<h3>Evidence against what it attested</h3>
<%~ it.evidence %>
</section>
`);

const unknownSovereign = template<{
  readonly name: string;
}>(`<section class="section" id="selected" aria-labelledby="selected-heading">
<h2 id="selected-heading" class="visually-hidden">Sovereign not found</h2>
<p class="notice warn">No treaty names the sovereign <bdi><%= it.name %></bdi>.</p>
</section>
`);

function selectedSection(
  model: GraphModel,
  { sovereign }: AtlasQuestion,
  node: GraphNode | undefined,
): Html {
  if (sovereign === '') return NO_HTML;
  if (node === undefined) return unknownSovereign({ name: nameInCell(sovereign) });
  const { id, isOwn, outgoing, incoming, revocations } = node;
  const named = encodeURIComponent(reference(id));
  const rest = `sovereign=${named}`;
  return sovereignPanel({
    name: nameInFull(id),
    facts: [
      ['Is', isOwn ? 'this authority' : 'another sovereign'],
      ['Length of its name', counted([...id].length, 'character')],
      ['Recognizes', counted(outgoing.length, 'treaty', 'treaties')],
      ['Is recognized by', counted(incoming.length, 'treaty', 'treaties')],
      ['Linked sovereigns', String(neighbors(model, node))],
    ],
    pathFrom: `./atlas?${rest}&from=${named}#path`,
    pathTo: `./atlas?${rest}&to=${named}#path`,
    outgoing:
      outgoing.length === 0
        ? emptyState({ text: 'It has issued no treaty.' })
        : edgesTable('outgoing', 'Treaties it has issued.', outgoing),
    incoming:
      incoming.length === 0
        ? emptyState({ text: 'No treaty names it.' })
        : edgesTable('incoming', 'Treaties that name it.', incoming),
    evidence:
      revocations.length === 0
        ? emptyState({ text: 'No imported feed revokes an attestation of it.' })
        : blastRadiusTable('Attestations of it that its imported feed revokes.', revocations),
  });
}

function neighbors({ links }: GraphModel, node: GraphNode): number {
  const linked = links.filter(({ from, to }) => from === node || to === node);
  return new Set(linked.map(({ from, to }) => (from === node ? to : from))).size;
}

const pathResult = template<{
  readonly trusted: boolean;
  readonly sentence: string;
  readonly reason: string;
  readonly steps: readonly {
    readonly from: string;
    readonly fromLink: string;
    readonly to: string;
    readonly toLink: string;
    readonly badge: StateBadge;
    readonly begins: string;
    readonly ends: string;
    readonly id: string;
  }[];
}>(`<div class="path-result" id="path-result">
<p class="notice <%= it.trusted ? 'ok' : 'warn' %>"><strong><%= it.trusted ? 'Trusted' : 'Not trusted' %></strong> <code><%= it.reason %></code><br><%= it.sentence %></p>
<% if (it.steps.length > 0) { %>
<ol class="path-steps">
<% for (const step of it.steps) { %>
<li><p><a href="<%= step.fromLink %>"><bdi><%= step.from %></bdi></a> recognizes <a href="<%= step.toLink %>"><bdi><%= step.to %></bdi></a> <span class="badge <%= step.badge.tone %>"><%= step.badge.word %></span></p><p class="small muted">Treaty <span class="id"><%= step.id %></span>, from <%= step.begins %> until <%= step.ends %>.</p></li>
<% } %>
</ol>
<% } %>
</div>
`);

const hint = template<{
  readonly text: string;
}>(`<p class="small muted" id="path-result"><%= it.text %></p>
`);

function pathSection(model: GraphModel, question: AtlasQuestion, path: TrustPath | null): Html {
  if (path === null) {
    const text =
      question.from === '' && question.to === ''
        ? 'Choose who evaluates and who is evaluated: trust leads from one to the other over active treaties.'
        : 'Choose the other sovereign too.';
    return hint({ text });
  }
  return pathResult({
    trusted: path.trusted,
    reason: path.reason,
    sentence: sentenceOf(model, path),
    steps: path.path.map((edge) => ({
      from: nameInCell(edge.from),
      fromLink: `${atlasLink(edge.from)}#selected`,
      to: nameInCell(edge.to),
      toLink: `${atlasLink(edge.to)}#selected`,
      badge: stateBadge(edge.lifecycle_state),
      begins: displayTime(edge.valid_from),
      ends: displayTime(edge.expires_at),
      id: nameInCell(edge.treaty_id),
    })),
  });
}

function sentenceOf(model: GraphModel, { from, to, reason, hop_count }: TrustPath): string {
  if (reason === 'active_treaty_path') {
    return hop_count === 1
      ? 'An active treaty leads directly from one to the other.'
      : `${hop_count} active treaties lead from one to the other; no path is shorter.`;
  }
  if (reason === 'direct_treaty_revoked') {
    return 'No path of active treaties leads there, and the direct treaty has been revoked or replaced.';
  }
  if (from === to) return 'Both are the same sovereign; a path needs two different ones.';
  const unknown = [from, to].filter((name) => model.node(name) === undefined);
  if (unknown.length > 0) return `No treaty names ${unknown.map(nameInCell).join(' or ')}.`;
  return 'No path of active treaties leads from one to the other.';
}

const list = template<{
  readonly left: number;
  readonly rows: readonly {
    readonly name: string;
    readonly search: string;
    readonly href: string;
    readonly index: number;
    readonly isOwn: boolean;
    readonly outgoing: number;
    readonly incoming: number;
    readonly states: readonly (StateBadge & { readonly state: EdgeState })[];
    readonly revoked: number;
  }[];
}>(`<div class="table-box" tabindex="0" role="region" aria-label="Sovereigns">
<table id="sovereigns">
<caption>By name.<% if (it.left > 0) { %> <%= it.left %> more are not shown: search for part of a name.<% } %></caption>
<thead><tr><th scope="col">Sovereign</th><th scope="col" class="number">Recognizes</th><th scope="col" class="number">Recognized by</th><th scope="col">Treaties that are</th><th scope="col" class="number">Revoked attestations</th></tr></thead>
<tbody>
<% for (const row of it.rows) { %>
<tr data-node="<%= row.index %>" data-search="<%= row.search %>" data-states="<%= row.states.map(({ state }) => state).join(' ') %>"><th scope="row" class="name"><a href="<%= row.href %>"><bdi><%= row.name %></bdi></a><% if (row.isOwn) { %> <span class="badge neutral">this authority</span><% } %></th><td class="number"><%= row.outgoing %></td><td class="number"><%= row.incoming %></td><td><% for (const each of row.states) { %><span class="badge <%= each.tone %>"><%= each.word %></span> <% } %></td><td class="number"><%= row.revoked %></td></tr>
<% } %>
</tbody>
</table>
</div>
`);

function listOf(found: readonly GraphNode[]): Html {
  if (found.length === 0) return emptyState({ text: 'No matching sovereign.' });
  return list({
    left: Math.max(0, found.length - MOST_LISTED),
    rows: found.slice(0, MOST_LISTED).map((node) => ({
      name: nameInCell(node.id),
      search: node.id.slice(0, 256).toLowerCase(),
      href: `${atlasLink(node.id)}#selected`,
      index: node.index,
      isOwn: node.isOwn,
      outgoing: node.outgoing.length,
      incoming: node.incoming.length,
      states: statesOf(node).map((state) => ({ state, ...stateBadge(state) })),
      revoked: node.revocations.length,
    })),
  });
}

function statesOf({ outgoing, incoming }: GraphNode): EdgeState[] {
  const present = new Set([...outgoing, ...incoming].map((edge) => edge.lifecycle_state));
  return EDGE_STATES.filter((state) => present.has(state));
}

export function atlasPage(
  model: GraphModel,
  question: AtlasQuestion,
  answer: AtlasAnswer,
  networkName: string,
): HtmlPage {
  return renderPage({
    title: 'Atlas',
    lede: 'Explore who recognizes whom, the evidence against it, and the paths of trust between sovereigns.',
    path: '/atlas',
    networkName,
    body: atlasMain(model, question, answer),
    style: STYLE,
    script: SCRIPT,
    forms: true,
  });
}
