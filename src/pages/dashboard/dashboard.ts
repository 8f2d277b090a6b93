/**
 * `/dashboard`: health and trust at a glance [service-read-endpoints], [core-6-5], legible from across a
 * room. Every value that changes has its path in `/dashboard.json` as `data-field` or `data-stat`.
 */
import { counted, shownCount } from '../../base/counts.ts';
import {
  type Dashboard,
  type DashboardFeed,
  type DashboardInstance,
  type DashboardSuccession,
  type DashboardTreaty,
  type HorizonSummary,
  LAPSING_KINDS,
  type LapsingKind,
  type RecentChangeRow,
  type TreatySummary,
  type TrustCycleSummary,
} from '../../protocol/rows/dashboard.ts';
import { LIFECYCLE_STATES } from '../../protocol/rows/recognition.ts';
import { type HtmlPage, renderPage } from '../ui/frame.ts';
import { type Html, html, NO_HTML } from '../ui/html.ts';
import {
  badge,
  bar,
  emptyState,
  LIVE_STATUS,
  liveRegion,
  type Stat,
  section,
  stateBadge,
  stats,
  TO_IMPORT,
  TO_ISSUE,
  type Tone,
} from '../ui/parts.ts';
import { type Column, idPart, sovereignColumn, table, timeColumn } from '../ui/table.ts';
import {
  attestationLink,
  capital,
  idText,
  nameInCell,
  sovereignLink,
  timeText,
  treatyLink,
} from '../ui/values.ts';
import { fleetSection } from './fleet-section.ts';
import type { DrawnHistory } from './history-section.ts';
import { postureSection } from './posture-section.ts';

/** The dashboard lists what needs attention; everything else is on the Connectome. */
export const MOST_URGENT = 12;
const MOST_FEEDS = 50;

/** The content of `<main>` below the heading; it needs only the first `MOST_URGENT` treaties. */
function dashboardMain(model: Dashboard, { section: history, sparks }: DrawnHistory): Html {
  const { active, tracked } = model.nodes;
  return html`${postureSection(model.posture)}${fleetSection(model.fleet, active, tracked, sparks)}
${section('figures', 'Trust', stats(statsOf(model)))}
${weekSection(model.horizon_summary)}${history}${treatiesSection(model)}
${section('changes', 'Recent trust changes', changesList(model.recent_changes))}
${section('feeds', 'Imported revocation feeds', feedsTable(model.revocation_feeds))}
${instancesSection(model.instances)}<p class="small muted">Network version <bdi data-field="sovereign.version">${nameInCell(model.sovereign.version)}</bdi>. Raw data: <a href="./dashboard.json">dashboard.json</a>.</p>`;
}

function statsOf(model: Dashboard): Stat[] {
  const { readiness, treaty_summary, connectome_summary, trust_cycle_summary: cycle } = model;
  const { revocation_feed_summary: feeds } = model;
  const isReady = readiness.status === 'ready';
  const shown = (field: string, value: string | number) =>
    html`<span data-field="${field}">${typeof value === 'number' ? shownCount(value) : value}</span>`;
  const revoked = connectome_summary.revoked_trust_material_count;
  return [
    {
      label: 'Authority',
      field: 'readiness.status',
      value: isReady ? 'ready' : 'not ready',
      note: isReady ? 'state can be read and written' : 'state is unreachable',
      tone: isReady ? 'ok' : 'danger',
    },
    {
      label: 'Active treaties',
      field: 'connectome_summary.active_edge_count',
      value: connectome_summary.active_edge_count,
      note: html`of ${shown('treaty_summary.total', treaty_summary.total)}`,
    },
    {
      label: 'Treaties at risk',
      field: 'treaty_summary.warning_count',
      value: treaty_summary.warning_count,
      note: 'expired, or will within three days',
      tone:
        treaty_summary.expired > 0 ? 'danger' : treaty_summary.warning_count > 0 ? 'warn' : 'ok',
    },
    {
      label: 'Sovereigns',
      field: 'connectome_summary.sovereign_count',
      value: connectome_summary.sovereign_count,
      note: html`${shown('connectome_summary.revoked_trust_material_count', revoked)} ${revoked === 1 ? 'revocation' : 'revocations'}`,
    },
    {
      label: 'Revocation feeds',
      field: 'revocation_feed_summary.freshness',
      value: feeds.freshness,
      note: html`${shown('revocation_feed_summary.count', feeds.count)} imported`,
      tone: stateBadge(feeds.freshness).tone,
    },
    {
      label: 'Trust cycle',
      field: 'trust_cycle_summary.status',
      value: cycle.status,
      note:
        cycle.completed_at === null
          ? 'has not run yet'
          : shown('trust_cycle_summary.completed_at_display', cycle.completed_at_display),
      tone: cycleTone(cycle),
    },
    ...(model.succession === undefined ? [] : [successionStat(model.succession)]),
  ];
}

/** How many nodes have followed a change of the authority key. */
function successionStat({ state, active, followed }: DashboardSuccession): Stat {
  return {
    label: state === 'staged' ? 'Nodes that know the next key' : 'Nodes that follow the new key',
    field: 'succession.followed',
    value: followed,
    note: html`of active nodes: <span data-field="succession.active">${shownCount(active)}</span>`,
    tone: followed === active ? 'ok' : state === 'staged' ? 'neutral' : 'warn',
  };
}

function cycleTone({ status, freshness }: TrustCycleSummary): Tone {
  if (status === 'failed') return 'danger';
  return status === 'verified' ? stateBadge(freshness).tone : 'neutral';
}

function treatiesSection({ treaty_summary: summary, treaties }: Dashboard): Html {
  const urgent = treaties.filter(({ lifecycle_state: state }) => isUrgent(state));
  return html`<section class="section" aria-labelledby="treaties-heading">
<div class="section-head"><h2 id="treaties-heading">Treaties</h2><a href="./connectome">See all in the Connectome</a></div>
${summary.total === 0 ? '' : treatyBar(summary)}
${stateCounts(summary)}
${urgent.length === 0 ? untroubled(summary) : urgentTable(urgent, summary)}</section>`;
}

function treatyBar(summary: TreatySummary): Html {
  let end = 0;
  const parts = LIFECYCLE_STATES.map((state) => {
    const start = Math.round(end * 10) / 10;
    const width = Math.round((1000 * summary[state]) / summary.total) / 10;
    end += width;
    return [`${stateBadge(state).tone} s-${state}`, start, width] as const;
  });
  return bar(parts);
}

function stateCounts(summary: TreatySummary): Html {
  return html`<ul class="states">
${LIFECYCLE_STATES.map(
  (state) =>
    html`<li>${badge(stateBadge(state))} <span class="state-count" data-field="treaty_summary.${state}">${shownCount(summary[state])}</span></li>`,
)}</ul>`;
}

function isUrgent(state: string): boolean {
  return state === 'expiring_soon' || state === 'expired';
}

function untroubled({ total }: TreatySummary): Html {
  return total === 0
    ? emptyState('No treaty has been issued. To issue one:', TO_ISSUE)
    : emptyState('No treaty has expired or will within three days.');
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
  { ...sovereignColumn('Issuer', (row) => row.issuer_sovereign_id), isHead: true },
  sovereignColumn('Subject', (row) => row.subject_sovereign_id),
  {
    head: 'Risk',
    kind: 'first',
    cell: ({ expiry_risk: word }) => badge({ word, tone: word === 'medium' ? 'warn' : 'danger' }),
  },
  timeColumn('Until', (row) => row.expires_at, 'nowrap first'),
  { head: 'Treaty', kind: 'id', cell: ({ treaty_id }) => treatyLink(treaty_id) },
];

/** States that stand out; that a change is recorded goes without saying. */
const CHANGE_TONES: Readonly<Record<string, Tone>> = {
  rejected: 'danger',
  revoked: 'danger',
};

function changesList(changes: readonly RecentChangeRow[]): Html {
  if (changes.length === 0) {
    return emptyState(
      'No changes yet. The first one is an invite, with which a node joins:',
      'invite create --role ROLE',
    );
  }
  return html`<ol class="changes" id="recent-changes">
${changes.map(changeItem)}</ol>`;
}

function changeItem({ created_at, event_type, summary }: RecentChangeRow): Html {
  const { title, state, fields } = summary;
  const id = `change-${idPart(`${created_at} ${event_type} ${fields[0]?.value ?? ''}`)}`;
  const tone = CHANGE_TONES[state];
  return html`<li id="${id}"><div class="change-head">${tone === undefined ? NO_HTML : html`${badge({ tone, word: state })} `}<strong>${title}</strong> ${timeText(created_at)}</div>
<dl class="change-facts">
${fields
  .filter(({ value }) => value !== '')
  .map(
    ({ label, value }) =>
      html`<div><dt>${capital(label.replace(/(_sovereign)?_id$/, ''))}</dt><dd>${changeValue(state, label, value)}</dd></div>`,
  )}</dl></li>`;
}

function feedsTable(feeds: readonly DashboardFeed[]): Html {
  if (feeds.length === 0) {
    return emptyState('No feed has been imported. To import one:', TO_IMPORT);
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
  { ...sovereignColumn('Issuer', (row) => row.issuer_sovereign_id), isHead: true },
  { head: 'Freshness', kind: 'first', cell: ({ freshness }) => badge(stateBadge(freshness)) },
  timeColumn('Imported', (row) => row.imported_at, 'nowrap first'),
  { head: 'Revoked', kind: 'number', cell: ({ revoked_count }) => revoked_count },
  { head: 'Sequence', kind: 'number', cell: ({ sequence }) => nameInCell(String(sequence)) },
];

/** The history changes without another version. A minute is recorded up to two seconds after it has ended. */
const HISTORY_EVERY_MS = 62_000;

export function dashboardPage(
  model: Dashboard,
  version: string,
  history: DrawnHistory,
  networkName: string,
): HtmlPage {
  return renderPage({
    title: 'Dashboard',
    lede: 'Health and trust of this sovereign at a glance.',
    path: '/dashboard',
    networkName,
    status: LIVE_STATUS,
    body: liveRegion(
      { source: 'dashboard', version, everyMs: HISTORY_EVERY_MS },
      dashboardMain(model, history),
    ),
    connects: true,
  });
}

/** What ends on each of the next days, as a strip of a calendar. */

const WEEKDAYS = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone: 'UTC' });

/** Whether a person has to do something before it ends: nodes renew by themselves, and a staged key takes over. */
export function needsPerson(kind: LapsingKind): boolean {
  return kind !== 'certificate' && kind !== 'activation';
}

function weekSection({ within_week, within_month, days }: HorizonSummary): Html {
  const needing = days.reduce((sum, day) => sum + countNeeding(day), 0);
  return html`<section class="section" aria-labelledby="week-heading">
<div class="section-head"><h2 id="week-heading">Ending soon</h2><p class="small muted"><strong>${counted(needing, 'needs', 'need')}</strong> a person within eight days. In all, <span data-field="horizon_summary.within_week">${shownCount(within_week)}</span> end within a week, <span data-field="horizon_summary.within_month">${shownCount(within_month)}</span> within thirty days</p></div>
${strip(days)}</section>`;
}

type Day = HorizonSummary['days'][number];

function countNeeding({ kinds }: Day): number {
  const needing = LAPSING_KINDS.filter(needsPerson);
  return needing.reduce((sum, kind) => sum + (kinds[kind] ?? 0), 0);
}

function strip(days: readonly Day[]): Html {
  if (days.every(({ count }) => count === 0)) return emptyState('Nothing ends within a week.');
  return html`<ol class="week">${days.map(
    (day) =>
      html`<li class="${day.count === 0 ? 'quiet' : ''} ${countNeeding(day) > 0 ? 'ending' : ''}"><span class="day">${WEEKDAYS.format(Date.parse(day.date))} ${day.date.slice(5)}</span>${kindsOf(day)}</li>`,
  )}</ol>`;
}

const NAMES: Readonly<Record<LapsingKind, readonly [one: string, many: string]>> = {
  delegation: ['delegation', 'delegations'],
  activation: ['key takes over', 'keys take over'],
  overlap: ['overlap of keys', 'overlaps of keys'],
  tls: ['TLS certificate', 'TLS certificates'],
  certificate: ['certificate', 'certificates'],
  treaty: ['treaty', 'treaties'],
  attestation: ['attestation', 'attestations'],
  partner: ['feed not fetched', 'feeds not fetched'],
  policy: ['policy', 'policies'],
};

function kindsOf({ count, kinds }: Day): Html[] {
  if (count === 0) return [html`<span class="muted">–</span>`];
  return LAPSING_KINDS.flatMap((kind) => {
    const found = kinds[kind] ?? 0;
    return found === 0 ? [] : [html`<span>${counted(found, ...NAMES[kind])}</span>`];
  });
}

/** Lists the linked instances [core-6-5]: which one writes, and which could take over at once. */

/** Returns nothing when this instance is not linked to others. */
export function instancesSection(instances: Dashboard['instances']): Html {
  if (instances === undefined) return NO_HTML;
  const rows = table({
    id: 'instances',
    caption: 'All instances answer requests. When the active one stops, a standby takes over.',
    columns: INSTANCE_COLUMNS,
    rows: instances,
    keyOf: ({ instance }) => instance,
  });
  return section('instances', 'Instances', rows);
}

const INSTANCE_COLUMNS: readonly Column<DashboardInstance>[] = [
  { head: 'Instance', kind: 'id', isHead: true, cell: ({ instance }) => idText(instance) },
  { head: 'Role', kind: 'first', cell: ({ role }) => role },
  { head: 'State', kind: 'first', cell: keptState },
];

function keptState({ role, lag_revisions: lag }: DashboardInstance): Html {
  if (role === 'active') return badge({ word: 'written here', tone: 'neutral' });
  if (lag === null) return badge({ word: 'not read yet', tone: 'warn' });
  if (lag === 0) return badge({ word: 'up to date', tone: 'ok' });
  return badge({ word: `${counted(lag, 'revision')} behind`, tone: 'warn' });
}
