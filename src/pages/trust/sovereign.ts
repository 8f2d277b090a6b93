/** `/sovereign`: one sovereign with its treaties, feed and revocations [core-4-14], [core-6-2]. */

import { counted } from '../../base/counts.ts';
import type { DashboardFeed } from '../../protocol/rows/dashboard.ts';
import type { BlastRadiusRow, EdgeRow } from '../../protocol/rows/graph.ts';
import type { GraphModel, GraphNode } from '../graph/model.ts';
import { blastRadiusTable, edgesTable } from '../graph/tables.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import { badge, emptyState, type Fact, facts, section, stateBadge } from '../ui/parts.ts';
import { pager, rowPage } from '../ui/table.ts';
import {
  atlasLink,
  idValue,
  nameInCell,
  nameInFull,
  sovereignAddress,
  timeText,
} from '../ui/values.ts';

export interface ShownSovereign {
  readonly id: string;
  /** Undefined when no treaty names it. */
  readonly node: GraphNode | undefined;
  /** The newest imported feed. */
  readonly feed: DashboardFeed | undefined;
}

/** The page number of each table. */
export interface SovereignPages {
  readonly out: number;
  readonly in: number;
  readonly revoked: number;
}

export function sovereignPage(
  shown: ShownSovereign,
  pages: SovereignPages,
  { ownName }: GraphModel,
): HtmlPage {
  const { id, node, feed } = shown;
  const isOwn = id === ownName;
  return renderPage({
    title: nameInCell(id),
    path: '/sovereign',
    networkName: ownName,
    status: html`<p class="lede">${aboutOf(isOwn, node)}</p>`,
    body: html`${section('sovereign', 'Sovereign', html`${facts(factsOf(id, node))}${node === undefined ? NO_HTML : actions(id)}`)}${section(
      'out',
      'Whom it recognizes',
      treaties(id, pages, 'out', node?.outgoing ?? []),
    )}${section(
      'in',
      'Who recognizes it',
      treaties(id, pages, 'in', node?.incoming ?? []),
    )}${section(
      'feed',
      'Revocation feed',
      isOwn ? OWN_FEED : feedFacts(feed),
    )}${isOwn ? NO_HTML : section('revoked', 'Attestations it has revoked', revocations(id, pages, node?.revocations ?? []))}<p class="small muted">Raw data: <a href="./connectome.json">connectome.json</a>, <a href="./dashboard.json">dashboard.json</a>.</p>`,
  });
}

function aboutOf(isOwn: boolean, node: GraphNode | undefined): string {
  if (isOwn) return 'The sovereign of this authority.';
  return node === undefined
    ? 'No treaty of this authority names it.'
    : 'Named by treaties of this authority.';
}

function factsOf(id: string, node: GraphNode | undefined): Fact[] {
  const { outgoing = [], incoming = [] } = node ?? {};
  return [
    ...(nameInFull(id) === nameInCell(id)
      ? []
      : [['Name', html`<bdi>${nameInFull(id)}</bdi>`] as const]),
    ['Recognizes', statesOf(outgoing)],
    ['Is recognized by', statesOf(incoming)],
  ];
}

function statesOf(edges: readonly EdgeRow[]): string {
  const isActive = ({ lifecycle_state: state }: EdgeRow) =>
    state === 'active' || state === 'expiring_soon';
  return `${counted(edges.length, 'treaty', 'treaties')}, ${edges.filter(isActive).length} in force`;
}

function actions(id: string): Html {
  return html`<p><a href="${atlasLink(id)}#selected">Show it in the atlas</a></p>`;
}

type Side = 'out' | 'in';

const SIDES: Readonly<Record<Side, readonly [caption: string, none: string]>> = {
  out: ['that it has issued', 'It has issued no treaty.'],
  in: ['recognizing it', 'No treaty recognizes it.'],
};

function treaties(id: string, pages: SovereignPages, side: Side, edges: readonly EdgeRow[]): Html {
  const [caption, none] = SIDES[side];
  if (edges.length === 0) return emptyState(none);
  const shown = rowPage(edges, pages[side]);
  const all = counted(edges.length, 'treaty', 'treaties');
  return html`<div class="listing">
${edgesTable(side, `${all} ${caption}.`, shown.rows, { without: side === 'out' ? 'from' : 'to' })}
${pager(`Pages of treaties ${caption}`, shown, (page) => addressOf(id, { ...pages, [side]: page }, side))}
</div>`;
}

function revocations(id: string, pages: SovereignPages, rows: readonly BlastRadiusRow[]): Html {
  if (rows.length === 0) return emptyState('No imported feed revokes any.');
  const shown = rowPage(rows, pages.revoked);
  const caption = `${counted(rows.length, 'attestation')}, and the sovereigns whose active treaties recognize their issuer.`;
  return html`<div class="listing">
${blastRadiusTable(caption, shown.rows)}
${pager('Pages of revoked attestations', shown, (revoked) => addressOf(id, { ...pages, revoked }, 'revoked'))}
</div>`;
}

function addressOf(id: string, pages: SovereignPages, part: string): string {
  const parameters = (['out', 'in', 'revoked'] as const)
    .filter((name) => pages[name] > 1)
    .map((name) => `&${name}=${pages[name]}`);
  return `${sovereignAddress(id, parameters.join(''))}#${part}-heading`;
}

const OWN_FEED = html`<p>This authority publishes its own feed: <a href="./sovereign-revocation-feed">sovereign-revocation-feed</a>.</p>`;

function feedFacts(feed: DashboardFeed | undefined): Html {
  if (feed === undefined) return emptyState('None of its feeds has been imported.');
  const { freshness, imported_at, revoked_count, sequence, feed_id } = feed;
  return facts([
    ['Freshness', badge(stateBadge(freshness))],
    ['Imported', timeText(imported_at)],
    ['Revokes', counted(revoked_count, 'attestation')],
    ['Sequence', nameInCell(String(sequence))],
    ['Feed', idValue(feed_id)],
  ]);
}
