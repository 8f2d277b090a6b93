/** `/connectome`: the whole recognition graph on one page [service-read-endpoints], [core-6-3]. */
import type { HtmlPage } from '../http/reply.ts';
import type { ConnectomeSummary } from '../views/rows/graph.ts';
import { browserScript } from './browser-script.ts';
import { emptyState } from './empty-state.ts';
import { renderPage } from './frame.ts';
import { counted, drawingOf, graphPicture, isTooLarge, NO_EMPHASIS } from './graph-drawing.ts';
import { MOST_DRAWN_NODES, MOST_DRAWN_TREATIES } from './graph-layout.ts';
import type { GraphModel } from './graph-model.ts';
import { GRAPH_STYLE } from './graph-style.ts';
import { blastRadiusTable, edgesTable, materialTable } from './graph-tables.ts';
import { type Html, html, keyed, NO_HTML } from './html.ts';
import { inlineCode } from './inline-code.ts';
import { LivePageContent } from './live-content.ts';
import { LIVE_STATUS, LIVE_STYLE, liveRegion } from './live-region.ts';

const STYLE = inlineCode(GRAPH_STYLE + LIVE_STYLE);
const SCRIPT = browserScript('connectome');

const CARDS = [
  ['sovereign_count', 'Sovereigns', 'issuers and subjects of treaties'],
  ['recognition_edge_count', 'Treaties', 'of any state'],
  ['active_edge_count', 'Active treaties', 'in force now'],
  ['revoked_edge_count', 'Revoked treaties', 'replaced ones included'],
  ['revoked_trust_material_count', 'Revoked trust material', 'treaties and attestations'],
  ['imported_revocation_count', 'Imported revocations', 'attestations revoked by their issuers'],
] as const;

/** The content of `<main>` below the heading. */
export function connectomeMain(model: GraphModel): Html {
  const { summary } = model.document;
  return html`<section class="section" aria-labelledby="summary-title">
<h2 id="summary-title" class="visually-hidden">Summary</h2>
<ul class="cards counts">
${CARDS.map((card) => keyed(card[0], cardItem(card, summary)))}</ul>
</section>
<section class="section" aria-labelledby="graph-heading">
<h2 id="graph-heading">Who recognizes whom</h2>
${keyed('graph', graphSection(model))}</section>
<section class="section" aria-labelledby="edges-heading">
<h2 id="edges-heading">Treaties</h2>
${keyed('treaties', treaties(model))}</section>
<section class="section" aria-labelledby="blast-heading">
<h2 id="blast-heading">Blast radius of imported revocations</h2>
${keyed('blast', blastRadius(model))}</section>
<section class="section" aria-labelledby="material-heading">
<h2 id="material-heading">Revoked trust material</h2>
${keyed('material', revokedMaterial(model))}</section>
<p class="small muted">The same as data: <a href="./connectome.json">connectome.json</a>, <a href="./recognition-graph">recognition-graph</a>. To follow one sovereign, or the path between two, open the <a href="./atlas">atlas</a>.</p>
`;
}

function cardItem([field, label, note]: (typeof CARDS)[number], summary: ConnectomeSummary): Html {
  return html`<li class="card"><span class="card-label">${label}</span><span class="card-value" data-field="summary.${field}">${summary[field]}</span><span class="card-note">${note}</span></li>
`;
}

function treaties({ document: { recognition_edges: edges } }: GraphModel): Html {
  if (edges.length === 0) return emptyState('No treaty has been issued.');
  const caption = `${counted(edges.length, 'treaty', 'treaties')}, by who recognizes and who is recognized.`;
  return edgesTable('treaties', caption, edges);
}

function blastRadius({ document: { revocation_blast_radius: rows } }: GraphModel): Html {
  if (rows.length === 0) {
    return emptyState('No imported revocation feed of another sovereign revokes anything.');
  }
  const caption =
    'Each imported revocation, and the sovereigns whose active treaties recognize its issuer.';
  return blastRadiusTable(caption, rows);
}

function revokedMaterial({ document }: GraphModel): Html {
  const { revoked_trust_material: rows, recognition_edges: edges } = document;
  if (rows.length === 0) return emptyState('Nothing has been revoked.');
  return materialTable(
    `${counted(rows.length, 'revocation')} of treaties and of attestations that other sovereigns issued.`,
    rows,
    new Map(edges.map((edge) => [edge.treaty_id, edge])),
  );
}

/** The drawing, or a sentence that says why there is none. */
export function graphSection(model: GraphModel, emphasis = NO_EMPHASIS): Html {
  if (model.nodes.length === 0) {
    return emptyState(
      'The graph is empty. A sovereign appears when a treaty names it, and this authority when it has issued one.',
    );
  }
  if (isTooLarge(model)) {
    return html`<p class="notice">With ${counted(model.nodes.length, 'sovereign')} and ${counted(model.document.recognition_edges.length, 'treaty', 'treaties')} the graph is too large to be drawn legibly (up to ${MOST_DRAWN_NODES} and ${MOST_DRAWN_TREATIES} are). The tables below hold all of it.</p>
`;
  }
  const drawing = drawingOf(model);
  return drawing === null ? NO_HTML : graphPicture(drawing, emphasis);
}

export function connectomePage(model: GraphModel, networkName: string): HtmlPage {
  return renderPage({
    title: 'Connectome',
    lede: 'Every treaty that this authority knows, what has been revoked, and whom that affects.',
    path: '/connectome',
    networkName,
    status: LIVE_STATUS,
    body: liveRegion('connectome', new LivePageContent(connectomeMain(model))),
    style: STYLE,
    script: SCRIPT,
    connects: true,
  });
}
