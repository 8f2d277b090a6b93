/** `/connectome`: the whole recognition graph on one page [service-read-endpoints], [core-6-3]. */

import { counted, shownCount } from '../../base/counts.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html } from '../ui/html.ts';
import {
  emptyState,
  LIVE_STATUS,
  liveRegion,
  section,
  stats,
  TO_IMPORT,
  TO_ISSUE,
} from '../ui/parts.ts';
import { pager, rowPage } from '../ui/table.ts';
import type { DrawnGraph } from './drawing.ts';
import type { GraphModel, GraphTreaty } from './model.ts';
import { stillGraph } from './section.ts';
import {
  blastRadiusTable,
  EVERY_TREATY,
  edgesTable,
  foundTreaties,
  materialTable,
  parametersOf,
  type Sorting,
  stateField,
  type TreatyQuery,
} from './tables.ts';

const COUNTS = [
  ['sovereign_count', 'Sovereigns', 'issuers and subjects of treaties'],
  ['recognition_edge_count', 'Treaties', 'of any state'],
  ['active_edge_count', 'Active treaties', 'in force, including those expiring soon'],
  ['revoked_edge_count', 'Revoked treaties', 'including replaced ones'],
  ['revoked_trust_material_count', 'Revoked trust material', 'treaties and attestations'],
  ['imported_revocation_count', 'Imported revocations', 'attestations revoked by their issuers'],
] as const;

/** The content of `<main>` below the heading. */
function connectomeMain(
  model: DrawnGraph,
  query: TreatyQuery,
  inOrder: readonly GraphTreaty[],
): Html {
  const { summary } = model.document;
  return html`<section class="section" aria-labelledby="summary-title">
<h2 id="summary-title" class="visually-hidden">Summary</h2>
${stats(COUNTS.map(([count, label, note]) => ({ label, field: `summary.${count}`, value: summary[count], note })))}</section>
${section('graph', 'Who recognizes whom', stillGraph(model))}
${section('treaties', 'Treaties', treaties(model, query, inOrder))}
${section('blast', 'Blast radius of imported revocations', blastRadius(model, query))}
${section('material', 'Revoked trust material', revokedMaterial(model, query))}
<p class="small muted">Raw data: <a href="./connectome.json">connectome.json</a>, <a href="./recognition-graph">recognition-graph</a>.</p>`;
}

function addressOf(query: TreatyQuery, section: string): string {
  return `./connectome${parametersOf(query)}#${section}-heading`;
}

function treaties(model: GraphModel, query: TreatyQuery, inOrder: readonly GraphTreaty[]): Html {
  if (inOrder.length === 0) return emptyState('No treaty has been issued. To issue one:', TO_ISSUE);
  const found = foundTreaties(model, inOrder, query);
  const shown = rowPage(found, query.page);
  const sorting: Sorting = (order) => {
    const isSorted = query.order === order;
    const isDescending = isSorted && !query.isDescending;
    const href = addressOf({ ...query, order, isDescending, page: 1 }, 'treaties');
    return { href, now: isSorted ? (query.isDescending ? 'descending' : 'ascending') : null };
  };
  const hrefOf = (page: number) => addressOf({ ...query, page }, 'treaties');
  const all = counted(inOrder.length, 'treaty', 'treaties');
  const caption =
    found.length === inOrder.length ? `${all}.` : `${shownCount(found.length)} of ${all}.`;
  return html`<div class="listing">
${treatyForm(query)}
${edgesTable(
  'treaties',
  caption,
  shown.rows.map(({ row }) => row),
  { sorting },
)}
${pager('Pages of treaties', shown, hrefOf)}
</div>`;
}

function treatyForm({ search, state: chosen, order, isDescending }: TreatyQuery): Html {
  const sort = order === null ? '' : `${isDescending ? '-' : ''}${order}`;
  return html`<form class="ask" method="get" action="./connectome#treaties-heading" role="search" aria-label="Treaties">
<p class="field"><label for="q">Sovereign or treaty</label><input type="search" id="q" name="q" value="${search}" placeholder="part of a name or id" autocomplete="off" spellcheck="false"></p>
${stateField(chosen)}<p class="field">${sort === '' ? '' : html`<input type="hidden" name="sort" value="${sort}">`}<button type="submit">Find</button>${search === '' && chosen === null && sort === '' ? '' : html` <a href="./connectome#treaties-heading">Clear</a>`}</p>
</form>`;
}

function blastRadius({ document }: GraphModel, query: TreatyQuery): Html {
  const shown = rowPage(document.revocation_blast_radius, query.blast);
  if (shown.all === 0) {
    return emptyState(
      'No imported revocation feed of another sovereign revokes anything. To import one:',
      TO_IMPORT,
    );
  }
  const caption =
    'Imported revocations, each with the sovereigns whose active treaties recognize its issuer.';
  const hrefOf = (blast: number) => addressOf({ ...query, blast }, 'blast');
  return html`<div class="listing">
${blastRadiusTable(caption, shown.rows)}
${pager('Pages of imported revocations', shown, hrefOf)}
</div>`;
}

function revokedMaterial(model: GraphModel, query: TreatyQuery): Html {
  const { document } = model;
  const shown = rowPage(document.revoked_trust_material, query.material);
  if (shown.all === 0)
    return emptyState('Nothing has been revoked. To end a treaty:', 'treaty revoke ID');
  const caption = `${counted(shown.all, 'revocation')} of treaties and of attestations that other sovereigns issued.`;
  const hrefOf = (material: number) => addressOf({ ...query, material }, 'material');
  return html`<div class="listing">
${materialTable(caption, shown.rows, model.treaty)}
${pager('Pages of revoked material', shown, hrefOf)}
</div>`;
}

/** How long a page with a query of its own waits before it fetches itself again: each is rendered for one reader. */
const SPREAD_OF_VIEW_MS = 10_000;

/** `inOrder` has all treaties. */
export function connectomePage(
  model: DrawnGraph,
  version: string,
  query = EVERY_TREATY,
  inOrder = model.treaties,
): HtmlPage {
  const spreadMs = parametersOf(query) === '' ? 0 : SPREAD_OF_VIEW_MS;
  return renderPage({
    title: 'Connectome',
    lede: 'Every treaty that this authority knows, what has been revoked, and whom that affects.',
    path: '/connectome',
    networkName: model.ownName,
    status: LIVE_STATUS,
    body: liveRegion(
      { source: 'connectome', version, spreadMs },
      connectomeMain(model, query, inOrder),
    ),
    connects: true,
  });
}
