/**
 * `/dashboard`: health and trust at a glance [service-read-endpoints], [core-6-5], legible from across a
 * room. Every element that changes has `data-field`, its path in `/dashboard.json`.
 */
import type { HtmlPage } from '../http/reply.ts';
import type {
  Dashboard,
  DashboardFeed,
  DashboardTreaty,
  RecentChangeRow,
  TreatySummary,
  TrustCycleSummary,
} from '../views/rows/dashboard.ts';
import { DASHBOARD_STYLE } from './dashboard-style.ts';
import { renderPage } from './frame.ts';
import { counted } from './graph-drawing.ts';
import { atlasLink, nameInCell } from './graph-names.ts';
import { stateBadge } from './graph-tables.ts';
import { inlineCode } from './inline-code.ts';
import { LIVE_STYLE, liveRegion } from './live-region.ts';
import { LIVE_SCRIPT } from './live-script.ts';
import { type Html, template } from './templates.ts';

type Tone = 'ok' | 'warn' | 'danger' | 'neutral';

const STYLE = inlineCode(DASHBOARD_STYLE + LIVE_STYLE);
const SCRIPT = inlineCode(LIVE_SCRIPT);

/** The dashboard lists what needs attention; everything else is on the Connectome. */
const MOST_URGENT = 12;
const MOST_FEEDS = 50;

interface Card {
  readonly label: string;
  readonly field: string;
  readonly value: string | number;
  readonly note: string;
  readonly noteField: string | null;
  readonly noteValue: string | number;
  readonly tone: Tone;
}

const main = template<{
  readonly posture: {
    readonly tone: Tone;
    readonly word: string;
    readonly reasons: readonly string[];
  };
  readonly cards: readonly Card[];
  readonly bar: readonly {
    readonly state: string;
    readonly word: string;
    readonly tone: string;
    readonly count: number;
    readonly width: number;
    readonly x: number;
  }[];
  readonly treatyTotal: number;
  readonly treaties: readonly {
    readonly issuer: string;
    readonly issuerLink: string;
    readonly subject: string;
    readonly subjectLink: string;
    readonly badge: { readonly word: string; readonly tone: string };
    readonly risk: { readonly word: string; readonly tone: string };
    readonly ends: string;
    readonly id: string;
  }[];
  readonly untroubled: string;
  readonly moreTreaties: number;
  readonly changes: readonly {
    readonly title: string;
    readonly tone: Tone;
    readonly state: string;
    readonly at: string;
    readonly instant: string;
    readonly fields: readonly { readonly label: string; readonly value: string }[];
  }[];
  readonly feeds: readonly {
    readonly issuer: string;
    readonly link: string;
    readonly sequence: string;
    readonly revoked: number;
    readonly imported: string;
    readonly age: string;
    readonly badge: { readonly word: string; readonly tone: Tone };
  }[];
  readonly moreFeeds: number;
  readonly version: string;
}>(`<section class="posture <%= it.posture.tone %>" id="posture" aria-labelledby="posture-word">
<h2 id="posture-word" class="posture-word"><%= it.posture.word %></h2>
<% if (it.posture.reasons.length > 0) { %>
<ul class="posture-reasons" id="warnings">
<% for (const reason of it.posture.reasons) { %><li><%= reason %></li>
<% } %>
</ul>
<% } %>
</section>
<section class="section" aria-labelledby="figures-heading">
<h2 id="figures-heading" class="visually-hidden">Figures</h2>
<ul class="cards figures">
<% for (const card of it.cards) { %>
<li class="card tone-<%= card.tone %>"><span class="card-label"><%= card.label %></span><span class="card-value" data-field="<%= card.field %>"><%= card.value %></span><span class="card-note"><%= card.note %><% if (card.noteField) { %> <span data-field="<%= card.noteField %>"><%= card.noteValue %></span><% } else { %><%= card.noteValue %><% } %></span></li>
<% } %>
</ul>
</section>
<section class="section" aria-labelledby="treaties-heading">
<div class="section-head"><h2 id="treaties-heading">Treaties</h2><a href="./connectome">All in the Connectome</a></div>
<% if (it.treatyTotal > 0) { %>
<svg class="bar" viewBox="0 0 100 3" preserveAspectRatio="none" aria-hidden="true" focusable="false"><% for (const part of it.bar) { %><rect class="tone-<%= part.tone %> s-<%= part.state %>" x="<%= part.x %>" y="0" width="<%= part.width %>" height="3"/><% } %></svg>
<% } %>
<ul class="states">
<% for (const part of it.bar) { %>
<li><span class="badge <%= part.tone %>"><%= part.word %></span> <span class="state-count" data-field="treaty_summary.<%= part.state %>"><%= part.count %></span></li>
<% } %>
</ul>
<% if (it.treaties.length === 0) { %>
<p class="empty"><%= it.untroubled %></p>
<% } else { %>
<div class="table-box" tabindex="0" role="region" aria-label="Treaties that need somebody">
<table id="urgent-treaties">
<caption>Those that have ended or will within three days, the most urgent first.<% if (it.moreTreaties > 0) { %> <%= it.moreTreaties %> more are in the <a href="./connectome">Connectome</a>.<% } %></caption>
<thead><tr><th scope="col">Recognizes</th><th scope="col">Is recognized</th><th scope="col">State</th><th scope="col">Risk</th><th scope="col">Until</th><th scope="col">Treaty</th></tr></thead>
<tbody>
<% for (const row of it.treaties) { %>
<tr><th scope="row" class="name"><a href="<%= row.issuerLink %>"><bdi><%= row.issuer %></bdi></a></th><td class="name"><a href="<%= row.subjectLink %>"><bdi><%= row.subject %></bdi></a></td><td><span class="badge <%= row.badge.tone %>"><%= row.badge.word %></span></td><td><span class="badge <%= row.risk.tone %>"><%= row.risk.word %></span></td><td class="nowrap"><%= row.ends %></td><td class="id"><%= row.id %></td></tr>
<% } %>
</tbody>
</table>
</div>
<% } %>
</section>
<section class="section" aria-labelledby="changes-heading">
<h2 id="changes-heading">Recent changes of trust</h2>
<% if (it.changes.length === 0) { %>
<p class="empty">Nothing has changed yet: no certificate, treaty, attestation or policy has been issued.</p>
<% } else { %>
<ol class="changes" id="recent-changes">
<% for (const change of it.changes) { %>
<li><div class="change-head"><span class="badge <%= change.tone %>"><%= change.state %></span> <strong><%= change.title %></strong> <time datetime="<%= change.instant %>"><%= change.at %></time></div>
<dl class="change-facts">
<% for (const { label, value } of change.fields) { %>
<div><dt><%= label %></dt><dd><bdi><%= value %></bdi></dd></div>
<% } %>
</dl></li>
<% } %>
</ol>
<% } %>
</section>
<section class="section" aria-labelledby="feeds-heading">
<h2 id="feeds-heading">Imported revocation feeds</h2>
<% if (it.feeds.length === 0) { %>
<p class="empty">No revocation feed of another sovereign has been imported.</p>
<% } else { %>
<div class="table-box" tabindex="0" role="region" aria-label="Imported revocation feeds">
<table id="revocation-feeds">
<caption>The newest feed of each issuer.<% if (it.moreFeeds > 0) { %> <%= it.moreFeeds %> more are in <a href="./dashboard.json">dashboard.json</a>.<% } %></caption>
<thead><tr><th scope="col">Issuer</th><th scope="col">Freshness</th><th scope="col">Imported</th><th scope="col" class="number">Age</th><th scope="col" class="number">Revoked</th><th scope="col" class="number">Sequence</th></tr></thead>
<tbody>
<% for (const row of it.feeds) { %>
<tr><th scope="row" class="name"><a href="<%= row.link %>"><bdi><%= row.issuer %></bdi></a></th><td><span class="badge <%= row.badge.tone %>"><%= row.badge.word %></span></td><td class="nowrap"><%= row.imported %></td><td class="number nowrap"><%= row.age %></td><td class="number"><%= row.revoked %></td><td class="number id"><%= row.sequence %></td></tr>
<% } %>
</tbody>
</table>
</div>
<% } %>
</section>
<p class="small muted">Network version <bdi data-field="sovereign.version"><%= it.version %></bdi>. The same as data: <a href="./dashboard.json">dashboard.json</a>.</p>
`);

/** The content of `<main>` below the heading. */
export function dashboardMain(model: Dashboard): Html {
  const urgent = model.treaties.filter(({ lifecycle_state: state }) => isUrgent(state));
  return main({
    posture: postureOf(model),
    cards: cardsOf(model),
    bar: barOf(model.treaty_summary),
    treatyTotal: model.treaty_summary.total,
    treaties: urgent.slice(0, MOST_URGENT).map(treatyRow),
    untroubled:
      model.treaty_summary.total === 0
        ? 'No treaty has been issued.'
        : 'No treaty has expired or will within three days.',
    moreTreaties: Math.max(0, urgent.length - MOST_URGENT),
    changes: model.recent_changes.map(changeRow),
    feeds: model.revocation_feeds.slice(0, MOST_FEEDS).map(feedRow),
    moreFeeds: Math.max(0, model.revocation_feeds.length - MOST_FEEDS),
    version: nameInCell(model.sovereign.version),
  });
}

function isUrgent(state: string): boolean {
  return state === 'expiring_soon' || state === 'expired';
}

/** One word for the overall state, and the reasons. */
function postureOf(model: Dashboard) {
  const isGrave =
    model.readiness.status !== 'ready' || model.trust_cycle_summary.status === 'failed';
  const reasons = model.warnings;
  if (isGrave) return { tone: 'danger', word: 'Needs action now', reasons } as const;
  if (reasons.length > 0) return { tone: 'warn', word: 'Needs attention', reasons } as const;
  return { tone: 'ok', word: 'All is well', reasons } as const;
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
      isReady ? 'state can be read and written' : 'state cannot be reached',
      isReady ? 'ok' : 'danger',
    ),
    card(
      'Active nodes',
      'nodes.active',
      nodes.active,
      'certificates not revoked:',
      'nodes.tracked',
      nodes.tracked,
    ),
    card(
      'Active treaties',
      'connectome_summary.active_edge_count',
      connectome_summary.active_edge_count,
      'treaties in all:',
      'treaty_summary.total',
      treaty_summary.total,
    ),
    card(
      'Treaties to look at',
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
      trust_cycle_summary.completed_at_display || 'none has run yet',
      cycleTone(trust_cycle_summary),
    ),
  ];
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

function treatyRow(row: DashboardTreaty) {
  return {
    issuer: nameInCell(row.issuer_sovereign_id),
    issuerLink: `${atlasLink(row.issuer_sovereign_id)}#selected`,
    subject: nameInCell(row.subject_sovereign_id),
    subjectLink: `${atlasLink(row.subject_sovereign_id)}#selected`,
    badge: stateBadge(row.lifecycle_state),
    risk: { word: row.expiry_risk, tone: row.expiry_risk === 'medium' ? 'warn' : 'danger' },
    ends: row.expires_at_display,
    id: nameInCell(row.treaty_id),
  };
}

const CHANGE_TONES: Readonly<Record<string, Tone>> = {
  accepted: 'ok',
  rejected: 'danger',
  revoked: 'danger',
};

function changeRow({ created_at, created_at_display, summary }: RecentChangeRow) {
  return {
    title: summary.title,
    tone: CHANGE_TONES[summary.state] ?? 'neutral',
    state: summary.state,
    at: created_at_display,
    instant: created_at,
    fields: summary.fields
      .filter(({ value }) => value !== '')
      .map(({ label, value }) => ({
        label: label.replaceAll('_', ' '),
        value: nameInCell(value),
      })),
  };
}

function feedRow(row: DashboardFeed) {
  return {
    issuer: nameInCell(row.issuer_sovereign_id),
    link: `${atlasLink(row.issuer_sovereign_id)}#selected`,
    sequence: nameInCell(String(row.sequence)),
    revoked: row.revoked_count,
    imported: row.imported_at_display,
    age: counted(row.age_hours, 'hour'),
    badge: { word: row.freshness, tone: freshnessTone(row.freshness) },
  };
}

export function dashboardPage(model: Dashboard, networkName: string): HtmlPage {
  return renderPage({
    title: 'Dashboard',
    lede: 'Health and trust of this sovereign at a glance.',
    path: '/dashboard',
    networkName,
    body: liveRegion({ topic: 'dashboard', content: dashboardMain(model) }),
    style: STYLE,
    script: SCRIPT,
    connects: true,
  });
}
