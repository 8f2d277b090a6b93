/** The dashboard: rebuilt on request if something it shows has changed. */

import { setTimeout } from 'node:timers/promises';
import type { ImportedFeed } from '../../../machines/revocation-feed.ts';
import { HOUR_MS } from '../../base/duration.ts';
import { compareCodePoints, jsonText, type WithText } from '../../base/json/write.ts';
import type { Runtime } from '../../base/runtime.ts';
import { displayTime, formatInstant } from '../../base/timestamp.ts';
import { createPauses, createSharedWork, inSlices } from '../../base/work.ts';
import { publishedDocument } from '../../protocol/contract/documents.ts';
import type {
  Dashboard,
  DashboardFeed,
  DashboardPartner,
  DashboardSuccession,
  FeedSummary,
  HorizonSummary,
} from '../../protocol/rows/dashboard.ts';
import { CYCLE_STALE_MS, recentChangeRow, trustCycleSummary } from '../audit/recent-changes.ts';
import type { Authority } from '../authority.ts';
import type { FleetFacts } from '../census.ts';
import { horizonSummary } from '../end-tally.ts';
import type { Handler } from '../engine/admission.ts';
import { connectomeSummary, sequenceValue } from '../recognition/recognition-graph.ts';
import { fetchState } from '../recognition/treaties.ts';
import { type TreatyBehind, treatiesBehind } from '../recognition/treaty-following.ts';
import { type Adoption, isUnderWay } from '../succession/adoption.ts';
import { currentPosture } from './health.ts';
import { endsOf, FEED_STALE_MS, WATCH_HOURS } from './horizon.ts';

const FRESH_HOURS = 24;
const MOST_PARTNERS = 100;

const LINKS = {
  dashboard_json: '/dashboard.json',
  connectome: '/connectome',
  connectome_json: '/connectome.json',
  recognition_treaties: '/recognition-treaties',
  recognition_graph: '/recognition-graph',
  api_reference: '/api-reference',
  cli_reference: '/cli-reference',
};

/** How long node counts may be out of date, in milliseconds; a relevant commit withdraws the document immediately. */
const LAG = 500;

/** Answers when the dashboard is current; concurrent readers share one build. */
export const refreshDashboard: Handler<'refreshDashboard'> = (na, unit) => {
  if (na.publisher.isCurrent('dashboard', unit.at)) return null;
  unit.whenCommitted(() => na.dashboardPace.take(() => build(na)));
  return null;
};

function build(na: Authority): Promise<undefined> | undefined {
  const counting = na.census.take();
  const rest = () => inSlices(publishDashboard(na));
  return counting === undefined ? rest() : counting.then(rest);
}

/** Renders the rows in slices, then reads the published values without pausing, so that they are consistent. */
function* publishDashboard(na: Authority): Generator<void, undefined> {
  const { recognition, dashboardTreaties } = na;
  if (na.publisher.isCurrent('dashboard', na.runtime.now())) return;
  yield* dashboardTreaties.prepare(recognition.edges(), na.runtime.now());
  const behind = yield* treatiesBehind(recognition.edges(), na.runtime.now());
  const counted = na.census.latest() ?? (yield* na.census.current());
  const now = na.runtime.now();
  const horizon = horizonSummary(endsOf(na, counted), counted.asOf);
  const model = dashboard(na, { fleet: counted.fleet, horizon, behind }, now);
  na.publisher.publish('dashboard', publishedDocument(jsonText(model), now + LAG));
}

/** The dashboard's model [core-6-5], derived only from committed state. */
function dashboard(
  na: Authority,
  {
    fleet: { silentKnownFrom: _, since: __, ...fleet },
    horizon,
    behind,
  }: { fleet: FleetFacts; horizon: HorizonSummary; behind: readonly TreatyBehind[] },
  now: number,
): WithText<Dashboard, 'treaties'> {
  const { recognition, counts } = na;
  const { networkName: id, networkVersion: version } = na.settings;
  const { treaties, summary, since } = na.dashboardTreaties.list(recognition.edges(), now);
  const feeds = [...na.subjects.allCommitted('revocation-feed')].map(([, { context }]) => context);
  const feedRows = feeds
    .toSorted((a, b) => compareCodePoints(a.issuer, b.issuer))
    .map((feed) => feedRow(feed, now));
  const feedSummary = summarizeFeeds(feedRows);
  const lastCycle = na.recentAudit.trustCycle();
  const trustCycle = trustCycleSummary(lastCycle, now);
  const { instances } = na.hostStatus();
  const partners = partnerRows(na);
  na.counted.facts = {
    treaties: summary,
    treatiesBehind: {
      count: behind.length,
      acceptStolenKey: behind.filter(({ acceptsStolenKey }) => acceptsStolenKey).length,
    },
    staleFeeds: feedSummary.stale_count,
    trustCycle,
    countedSince: {
      treaties_expired: since.expired,
      treaties_expiring: since.expiring_soon,
      feeds_stale:
        feedSummary.stale_count === 0
          ? null
          : Math.min(...feeds.map(({ importedAt }) => importedAt)) + FEED_STALE_MS,
      trust_cycle: lastCycle && lastCycle.completedAt + (lastCycle.passed ? CYCLE_STALE_MS : 0),
    },
  };
  const posture = currentPosture(na, now);
  const succession = isUnderWay(na.census.followed(), now) ? na.census.adoption() : null;
  return {
    sovereign: { id, version },
    readiness: { status: na.store.health() === null ? 'ready' : 'not_ready' },
    nodes: {
      active: na.liveness.activeCount(now),
      // Certificates that are not revoked.
      tracked: counts.keptCertificates() - counts.revokedCertificates(),
    },
    fleet: { ...fleet, roles: [...fleet.roles] },
    connectome_summary: connectomeSummary(recognition, now),
    treaty_summary: summary,
    treaties,
    revocation_feed_summary: feedSummary,
    revocation_feeds: feedRows,
    trust_cycle_summary: trustCycle,
    recent_changes: na.recentAudit.changes().map(recentChangeRow),
    horizon_summary: horizon,
    ...(succession !== null && { succession: successionRow(succession) }),
    ...(instances === null ? {} : { instances: [...instances] }),
    ...(partners.length > 0 && { partners }),
    posture,
    warnings: posture.findings.map(({ sentence }) => sentence),
    links: LINKS,
  };
}

function successionRow({ statement: { statement, state }, nodes }: Adoption): DashboardSuccession {
  const { activates_at, overlap_until } = statement;
  const { active, followed } = nodes;
  return { state, activates_at, overlap_until, active, followed };
}

/** Those that fail first. */
function partnerRows(na: Authority): DashboardPartner[] {
  return [...na.hostStatus().partners.values()]
    .sort((a, b) => Number(a.problem === null) - Number(b.problem === null))
    .slice(0, MOST_PARTNERS)
    .map(({ subject, endpoint }) => ({
      subject_sovereign_id: subject,
      endpoint,
      ...fetchState(na, subject, endpoint),
    }));
}

function feedRow(feed: ImportedFeed, now: number): DashboardFeed {
  const age = Math.max(0, Math.floor((now - feed.importedAt) / HOUR_MS));
  return {
    feed_id: feed.feedId,
    issuer_sovereign_id: feed.issuer,
    sequence: sequenceValue(feed.sequence),
    revoked_count: feed.revokedCount,
    imported_at: formatInstant(feed.importedAt),
    imported_at_display: displayTime(formatInstant(feed.importedAt)),
    age_hours: age,
    freshness: freshnessOf(age),
  };
}

function freshnessOf(ageHours: number): DashboardFeed['freshness'] {
  if (ageHours <= FRESH_HOURS) return 'fresh';
  return ageHours <= WATCH_HOURS ? 'watch' : 'stale';
}

function summarizeFeeds(rows: readonly DashboardFeed[]): FeedSummary {
  const stale = rows.filter(({ freshness }) => freshness === 'stale').length;
  const watch = rows.filter(({ freshness }) => freshness === 'watch').length;
  const worst = stale > 0 ? 'stale' : watch > 0 ? 'watch' : 'fresh';
  return {
    count: rows.length,
    freshness: rows.length === 0 ? 'none' : worst,
    stale_count: stale,
    watch_count: watch,
  };
}

/** The longest a reader waits, in milliseconds: the dashboard of a large network is built twice a second. */
const LONGEST_PAUSE = 500;
/** Each pause is this many times as long as the build before it, so that builds use a twentieth of the time. */
const PAUSE_PER_BUILD = 20;

/** Spaces out builds of the dashboard, no matter how often it changes or is requested. */
export function createDashboardPace(elapsed: Runtime['elapsed']) {
  const builds = createSharedWork();
  const pauses = createPauses(elapsed, { perWork: PAUSE_PER_BUILD, longestMs: LONGEST_PAUSE });

  function run(build: () => Promise<void> | undefined): Promise<void> | undefined {
    const began = elapsed();
    const building = build();
    if (building !== undefined) return building.finally(() => pauses.after(began));
    pauses.after(began);
    return undefined;
  }

  return {
    /**
     * Builds immediately, or after the pause that follows the last build, or joins a build that is already scheduled.
     * A build that takes a while must return a promise, and must read the values that it publishes last.
     */
    take: (build: () => Promise<void> | undefined): Promise<void> | undefined =>
      builds.share(() => {
        const pause = pauses.left();
        return pause <= 0 ? run(build) : setTimeout(pause).then(() => run(build));
      }),
  };
}
