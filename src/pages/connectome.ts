/** `/connectome`: the whole recognition graph on one page [service-read-endpoints], [core-6-3]. */
import type { HtmlPage } from '../http/reply.ts';
import { renderPage } from './frame.ts';
import { counted, drawingOf, graphPicture, isTooLarge, NO_EMPHASIS } from './graph-drawing.ts';
import { MOST_DRAWN_NODES, MOST_DRAWN_TREATIES } from './graph-layout.ts';
import type { GraphModel } from './graph-model.ts';
import { HIGHLIGHT_SCRIPT } from './graph-script.ts';
import { GRAPH_STYLE } from './graph-style.ts';
import { blastRadiusTable, edgesTable, materialTable } from './graph-tables.ts';
import { inlineCode } from './inline-code.ts';
import { LIVE_STYLE, liveRegion } from './live-region.ts';
import { LIVE_SCRIPT } from './live-script.ts';
import { type Html, NO_HTML, template } from './templates.ts';

const STYLE = inlineCode(GRAPH_STYLE + LIVE_STYLE);
const SCRIPT = inlineCode(HIGHLIGHT_SCRIPT + LIVE_SCRIPT);

const CARDS = [
  ['sovereign_count', 'Sovereigns', 'issuers and subjects of treaties'],
  ['recognition_edge_count', 'Treaties', 'of any state'],
  ['active_edge_count', 'Active treaties', 'in force now'],
  ['revoked_edge_count', 'Revoked treaties', 'replaced ones included'],
  ['revoked_trust_material_count', 'Revoked trust material', 'treaties and attestations'],
  ['imported_revocation_count', 'Imported revocations', 'attestations revoked by their issuers'],
] as const;

const main = template<{
  readonly cards: readonly (readonly [field: string, label: string, note: string, value: number])[];
  readonly isEmpty: boolean;
  readonly picture: Html;
  readonly edges: Html;
  readonly material: Html;
  readonly blast: Html;
}>(`<section class="section" aria-labelledby="summary-title">
<h2 id="summary-title" class="visually-hidden">Summary</h2>
<ul class="cards counts">
<% for (const [field, label, note, value] of it.cards) { %>
<li class="card"><span class="card-label"><%= label %></span><span class="card-value" data-field="summary.<%= field %>"><%= value %></span><span class="card-note"><%= note %></span></li>
<% } %>
</ul>
</section>
<section class="section" aria-labelledby="graph-heading">
<h2 id="graph-heading">Who recognizes whom</h2>
<%~ it.picture %>
</section>
<section class="section" aria-labelledby="edges-heading">
<h2 id="edges-heading">Treaties</h2>
<%~ it.edges %>
</section>
<section class="section" aria-labelledby="blast-heading">
<h2 id="blast-heading">Blast radius of imported revocations</h2>
<%~ it.blast %>
</section>
<section class="section" aria-labelledby="material-heading">
<h2 id="material-heading">Revoked trust material</h2>
<%~ it.material %>
</section>
<p class="small muted">The same as data: <a href="./connectome.json">connectome.json</a>, <a href="./recognition-graph">recognition-graph</a>. To follow one sovereign, or the path between two, open the <a href="./atlas">atlas</a>.</p>
`);

export const emptyState = template<{ readonly text: string }>(`<p class="empty"><%= it.text %></p>
`);

const tooLarge = template<{ readonly sentence: string }>(`<p class="notice"><%= it.sentence %></p>
`);

/** The content of `<main>` below the heading. */
export function connectomeMain(model: GraphModel): Html {
  const { summary, recognition_edges, revoked_trust_material, revocation_blast_radius } =
    model.document;
  return main({
    cards: CARDS.map(([field, label, note]) => [field, label, note, summary[field]]),
    isEmpty: model.nodes.length === 0,
    picture: graphSection(model),
    edges:
      recognition_edges.length === 0
        ? emptyState({ text: 'No treaty has been issued.' })
        : edgesTable(
            'treaties',
            `${counted(recognition_edges.length, 'treaty', 'treaties')}, by who recognizes and who is recognized.`,
            recognition_edges,
          ),
    material:
      revoked_trust_material.length === 0
        ? emptyState({ text: 'Nothing has been revoked.' })
        : materialTable(
            `${counted(revoked_trust_material.length, 'revocation')} of treaties and of attestations that other sovereigns issued.`,
            revoked_trust_material,
            new Map(recognition_edges.map((edge) => [edge.treaty_id, edge])),
          ),
    blast:
      revocation_blast_radius.length === 0
        ? emptyState({
            text: 'No imported revocation feed of another sovereign revokes anything.',
          })
        : blastRadiusTable(
            'Each imported revocation, and the sovereigns whose active treaties recognize its issuer.',
            revocation_blast_radius,
          ),
  });
}

/** The drawing, or a sentence that says why there is none. */
export function graphSection(model: GraphModel, emphasis = NO_EMPHASIS): Html {
  if (model.nodes.length === 0) {
    return emptyState({
      text: 'The graph is empty. A sovereign appears when a treaty names it, and this authority when it has issued one.',
    });
  }
  if (isTooLarge(model)) {
    return tooLarge({
      sentence: `With ${counted(model.nodes.length, 'sovereign')} and ${counted(model.document.recognition_edges.length, 'treaty', 'treaties')} the graph is too large to be drawn legibly (up to ${MOST_DRAWN_NODES} and ${MOST_DRAWN_TREATIES} are). The tables below hold all of it.`,
    });
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
    body: liveRegion({ topic: 'connectome', content: connectomeMain(model) }),
    style: STYLE,
    script: SCRIPT,
    connects: true,
  });
}
