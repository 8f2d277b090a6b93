/**
 * `/dashboard`: health and trust at a glance [service-read-endpoints], [core-6-5], legible from across a
 * room. Every element that changes has `data-field`, its path in `/dashboard.json`.
 */

import type {
  Dashboard,
  DashboardFeed,
  DashboardSuccession,
  DashboardTreaty,
  RecentChangeRow,
  TreatySummary,
  TrustCycleSummary,
} from '../protocol/rows/dashboard.ts';
import { browserScript } from './browser-script.ts';
import { shownCount } from './counts.ts';
import { DASHBOARD_STYLE } from './dashboard-style.ts';
import { emptyState } from './empty-state.ts';
import type { HtmlPage } from './frame.ts';
import { renderPage } from './frame.ts';
import { counted } from './graph-drawing.ts';
import { nameInCell } from './graph-names.ts';
import { badge, stateBadge } from './graph-tables.ts';
import { HISTORY_PLACE, withHistory } from './history-section.ts';
import { HISTORY_STYLE } from './history-style.ts';
import { WEEK_STYLE, weekSection } from './horizon-week.ts';
import { type Html, html, keyed } from './html.ts';
import { inlineCode } from './inline-code.ts';
import { instancesSection } from './instances-table.ts';
import type { LivePageContent } from './live-content.ts';
import { LIVE_STATUS, LIVE_STYLE, liveRegion, WHEN_LOST } from './live-region.ts';

import { type Column, shortKey, TABLE_STYLE, table } from './table.ts';
import { attestationLink, sovereignLink, timeText, treatyLink } from './values.ts';

type Tone = 'ok' | 'warn' | 'danger' | 'neutral';

const STYLE = inlineCode(DASHBOARD_STYLE + WEEK_STYLE + HISTORY_STYLE + TABLE_STYLE + LIVE_STYLE);
const SCRIPT = browserScript('dashboard');

/** The dashboard lists what needs attention; everything else is on the Connectome. */
export const MOST_URGENT = 12;
const MOST_FEEDS = 50;

/** The content of `<main>` below the heading; it needs only the first `MOST_URGENT` treaties. */
export function dashboardMain(model: Dashboard): Html {
  return html`${keyed('posture', postureSection(model))}${figuresSection(model)}${weekSection(model.horizon_summary)}${HISTORY_PLACE}${keyed('treaties', treatiesSection(model))}<section class="section" aria-labelledby="changes-heading">
<h2 id="changes-heading">Recent trust changes</h2>
${keyed('changes', changesList(model.recent_changes))}</section>
<section class="section" aria-labelledby="feeds-heading">
<h2 id="feeds-heading">Imported revocation feeds</h2>
${keyed('feeds', feedsTable(model.revocation_feeds))}</section>
${instancesSection(model.instances)}<p class="small muted">Network version ${keyed('version', html`<bdi data-field="sovereign.version">${nameInCell(model.sovereign.version)}</bdi>`)}. Raw data: <a href="./dashboard.json">dashboard.json</a>.</p>
`;
}

function figuresSection(model: Dashboard): Html {
  return html`<section class="section" aria-labelledby="figures-heading">
<h2 id="figures-heading" class="visually-hidden">Figures</h2>
<ul class="cards figures">
${cardsOf(model).map((card) => keyed(card.field, cardItem(card)))}</ul>
</section>
`;
}

function postureSection(model: Dashboard): Html {
  const { status, findings, unknown } = model.posture;
  const { tone, word } = status === 'ok' && unknown.length > 0 ? SO_FAR : POSTURES[status];
  return html`<section class="posture ${tone}" id="posture" aria-labelledby="posture-word">
<h2 id="posture-word" class="posture-word">${WHEN_LOST}${word}</h2>
${
  findings.length + unknown.length === 0
    ? ''
    : html`<ul class="posture-reasons" id="warnings">
${[...findings, ...unknown].map(
  ({ sentence }) => html`<li>${sentence}</li>
`,
)}</ul>
`
}</section>
`;
}

const POSTURES = {
  ok: { tone: 'ok', word: 'All is well' },
  attention: { tone: 'warn', word: 'Needs attention' },
  action: { tone: 'danger', word: 'Needs action now' },
} as const satisfies Record<Dashboard['posture']['status'], { tone: Tone; word: string }>;

const SO_FAR = { tone: 'ok', word: 'All is well, as far as known' } as const;

interface Card {
  readonly label: string;
  readonly field: string;
  readonly value: string | number;
  readonly note: string;
  readonly noteField: string | null;
  readonly noteValue: string | number;
  readonly tone: Tone;
}

function cardItem({ label, field, note, noteField, tone, ...card }: Card): Html {
  const [value, noteValue] = [figure(card.value), figure(card.noteValue)];
  const shownNote =
    noteField === null ? noteValue : html` <span data-field="${noteField}">${noteValue}</span>`;
  return html`<li class="card tone-${tone}"><span class="card-label">${label}</span><span class="card-value" data-field="${field}">${value}</span><span class="card-note">${note}${shownNote}</span></li>
`;
}

function figure(value: string | number): string {
  return typeof value === 'number' ? shownCount(value) : value;
}

function cardsOf(model: Dashboard): Card[] {
  const { readiness, nodes, treaty_summary, connectome_summary, trust_cycle_summary } = model;
  const { revocation_feed_summary: feeds } = model;
  const isReady = readiness.status === 'ready';
  return [
    card(
      'Authority',
      'readiness.status',
      isReady ? 'ready' : 'not ready',
      '',
      null,
      isReady ? 'state can be read and written' : 'state is unreachable',
      isReady ? 'ok' : 'danger',
    ),
    card(
      'Active nodes',
      'nodes.active',
      nodes.active,
      'unrevoked certificates:',
      'nodes.tracked',
      nodes.tracked,
    ),
    card(
      'Active treaties',
      'connectome_summary.active_edge_count',
      connectome_summary.active_edge_count,
      'total treaties:',
      'treaty_summary.total',
      treaty_summary.total,
    ),
    card(
      'Treaties at risk',
      'treaty_summary.warning_count',
      treaty_summary.warning_count,
      '',
      null,
      'expired, or within three days',
      treaty_summary.expired > 0 ? 'danger' : treaty_summary.warning_count > 0 ? 'warn' : 'ok',
    ),
    card(
      'Sovereigns',
      'connectome_summary.sovereign_count',
      connectome_summary.sovereign_count,
      'revoked trust material:',
      'connectome_summary.revoked_trust_material_count',
      connectome_summary.revoked_trust_material_count,
    ),
    card(
      'Revocation feeds',
      'revocation_feed_summary.freshness',
      feeds.freshness,
      'imported:',
      'revocation_feed_summary.count',
      feeds.count,
      freshnessTone(feeds.freshness),
    ),
    card(
      'Trust cycle',
      'trust_cycle_summary.status',
      trust_cycle_summary.status.replaceAll('_', ' '),
      '',
      trust_cycle_summary.completed_at === null ? null : 'trust_cycle_summary.completed_at_display',
      trust_cycle_summary.completed_at_display || 'has not run yet',
      cycleTone(trust_cycle_summary),
    ),
    ...(model.succession === undefined ? [] : [successionCard(model.succession)]),
  ];
}

/** How many nodes have followed a change of the authority key. */
function successionCard({ state, active, followed }: DashboardSuccession): Card {
  const isComplete = followed === active;
  return card(
    state === 'staged' ? 'Nodes that know the next key' : 'Nodes that follow the new key',
    'succession.followed',
    followed,
    'of active nodes:',
    'succession.active',
    active,
    isComplete ? 'ok' : state === 'staged' ? 'neutral' : 'warn',
  );
}

function card(
  label: string,
  field: string,
  value: string | number,
  note: string,
  noteField: string | null,
  noteValue: string | number,
  tone: Tone = 'neutral',
): Card {
  return { label, field, value, note, noteField, noteValue, tone };
}

function cycleTone({ status, freshness }: TrustCycleSummary): Tone {
  if (status === 'failed') return 'danger';
  return status === 'verified' ? freshnessTone(freshness) : 'neutral';
}

function freshnessTone(freshness: string): Tone {
  if (freshness === 'fresh') return 'ok';
  if (freshness === 'watch') return 'warn';
  return freshness === 'stale' ? 'danger' : 'neutral';
}

function treatiesSection({ treaty_summary: summary, treaties }: Dashboard): Html {
  const urgent = treaties.filter(({ lifecycle_state: state }) => isUrgent(state));
  const parts = barOf(summary);
  return html`<section class="section" aria-labelledby="treaties-heading">
<div class="section-head"><h2 id="treaties-heading">Treaties</h2><a href="./connectome">See all in the Connectome</a></div>
${summary.total === 0 ? '' : keyed('bar', bar(parts))}
${keyed('states', stateCounts(parts))}
${urgent.length === 0 ? emptyState(untroubled(summary)) : urgentTable(urgent, summary)}</section>
`;
}

function bar(parts: ReturnType<typeof barOf>): Html {
  return html`<svg class="bar" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true" focusable="false">${parts.map(({ tone, state, x, width }) => html`<rect class="tone-${tone} s-${state}" x="${x}" y="0" width="${width}" height="3"/>`)}</svg>`;
}

function stateCounts(parts: ReturnType<typeof barOf>): Html {
  return html`<ul class="states">
${parts.map(
  (
    part,
  ) => html`<li>${badge(part)} <span class="state-count" data-field="treaty_summary.${part.state}">${shownCount(part.count)}</span></li>
`,
)}</ul>`;
}

const BAR = ['active', 'expiring_soon', 'expired', 'revoked', 'replaced'] as const;

function barOf(summary: TreatySummary) {
  let x = 0;
  return BAR.map((state) => {
    const count = summary[state];
    const width = summary.total === 0 ? 0 : (100 * count) / summary.total;
    const part = { state, ...stateBadge(state), count, width, x };
    x += width;
    return part;
  });
}

function isUrgent(state: string): boolean {
  return state === 'expiring_soon' || state === 'expired';
}

function untroubled({ total }: TreatySummary): string {
  return total === 0
    ? 'No treaty has been issued.'
    : 'No treaty has expired or will within three days.';
}

function urgentTable(urgent: readonly DashboardTreaty[], summary: TreatySummary): Html {
  const rows = urgent.slice(0, MOST_URGENT);
  const more = summary.warning_count - rows.length;
  const rest = html` ${shownCount(more)} more are in the <a href="./connectome">Connectome</a>.`;
  return table({
    id: 'urgent-treaties',
    caption: html`Treaties that have expired or will within three days, most urgent first.${more > 0 ? rest : ''}`,
    columns: URGENT_COLUMNS,
    rows,
    keyOf: ({ treaty_id }) => treaty_id,
  });
}

const URGENT_COLUMNS: readonly Column<DashboardTreaty>[] = [
  {
    head: 'Recognizes',
    kind: 'name',
    isHead: true,
    cell: ({ issuer_sovereign_id }) => sovereignLink(issuer_sovereign_id),
  },
  {
    head: 'Is recognized',
    kind: 'name',
    cell: ({ subject_sovereign_id }) => sovereignLink(subject_sovereign_id),
  },
  {
    head: 'State',
    kind: 'first',
    cell: ({ lifecycle_state }) => badge(stateBadge(lifecycle_state)),
  },
  {
    head: 'Risk',
    kind: 'first',
    cell: ({ expiry_risk: word }) => badge({ word, tone: word === 'medium' ? 'warn' : 'danger' }),
  },
  { head: 'Until', kind: 'nowrap first', cell: ({ expires_at }) => timeText(expires_at) },
  { head: 'Treaty', kind: 'id', cell: ({ treaty_id }) => treatyLink(treaty_id) },
];

const CHANGE_TONES: Readonly<Record<string, Tone>> = {
  accepted: 'ok',
  rejected: 'danger',
  revoked: 'danger',
};

function changesList(changes: readonly RecentChangeRow[]): Html {
  if (changes.length === 0) {
    return emptyState(
      'No changes yet: no certificate, treaty, attestation or policy has been issued.',
    );
  }
  return html`<ol class="changes" id="recent-changes">
${changes.map((change) => keyed(changeKey(change), changeItem(change)))}</ol>
`;
}

function changeKey({ created_at, event_type, summary }: RecentChangeRow): string {
  return shortKey(`${created_at} ${event_type} ${summary.fields[0]?.value ?? ''}`);
}

function changeItem({ created_at, summary }: RecentChangeRow): Html {
  const { title, state, fields } = summary;
  const tone = CHANGE_TONES[state] ?? 'neutral';
  return html`<li><div class="change-head">${badge({ tone, word: state })} <strong>${title}</strong> ${timeText(created_at)}</div>
<dl class="change-facts">
${fields
  .filter(({ value }) => value !== '')
  .map(
    ({
      label,
      value,
    }) => html`<div><dt>${label.replaceAll('_', ' ')}</dt><dd>${changeValue(state, label, value)}</dd></div>
`,
  )}</dl></li>
`;
}

function feedsTable(feeds: readonly DashboardFeed[]): Html {
  if (feeds.length === 0) {
    return emptyState('No revocation feed has been imported from another sovereign.');
  }
  const more = Math.max(0, feeds.length - MOST_FEEDS);
  const rest = html` ${shownCount(more)} more are in <a href="./dashboard.json">dashboard.json</a>.`;
  return table({
    id: 'revocation-feeds',
    caption: html`The newest feed of each issuer.${more > 0 ? rest : ''}`,
    columns: FEED_COLUMNS,
    rows: feeds.slice(0, MOST_FEEDS),
    keyOf: ({ issuer_sovereign_id }) => issuer_sovereign_id,
  });
}

const LINKS: Readonly<Record<string, (id: string) => Html>> = {
  treaty_id: treatyLink,
  attestation_id: attestationLink,
  issuer_sovereign_id: sovereignLink,
  subject_sovereign_id: sovereignLink,
};

/** A rejected item may not have a page. */
function changeValue(state: string, label: string, value: string): Html {
  const link = state === 'rejected' ? undefined : LINKS[label];
  return link?.(value) ?? html`<bdi>${nameInCell(value)}</bdi>`;
}

const FEED_COLUMNS: readonly Column<DashboardFeed>[] = [
  {
    head: 'Issuer',
    kind: 'name',
    isHead: true,
    cell: ({ issuer_sovereign_id }) => sovereignLink(issuer_sovereign_id),
  },
  {
    head: 'Freshness',
    kind: 'first',
    cell: ({ freshness: word }) => badge({ word, tone: freshnessTone(word) }),
  },
  {
    head: 'Imported',
    kind: 'nowrap first',
    cell: ({ imported_at }) => timeText(imported_at),
  },
  { head: 'Age', kind: 'number nowrap', cell: ({ age_hours }) => counted(age_hours, 'hour') },
  { head: 'Revoked', kind: 'number', cell: ({ revoked_count }) => revoked_count },
  { head: 'Sequence', kind: 'number id', cell: ({ sequence }) => nameInCell(String(sequence)) },
];

export function dashboardPage(
  content: LivePageContent,
  history: Html,
  networkName: string,
): HtmlPage {
  return renderPage({
    title: 'Dashboard',
    lede: 'Health and trust of this sovereign at a glance.',
    path: '/dashboard',
    networkName,
    status: LIVE_STATUS,
    body: liveRegion('dashboard', { ...content, markup: withHistory(content, history) }),
    style: STYLE,
    script: SCRIPT,
    connects: true,
  });
}
