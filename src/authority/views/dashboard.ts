/** The dashboard model [core-6-5], derived only from committed state. */
import type { ImportedFeed } from '../../../machines/revocation-feed.ts';
import { compareCodePoints, type WithText } from '../../base/json/write.ts';
import { displayTime, formatInstant } from '../../base/timestamp.ts';
import type {
  Dashboard,
  DashboardFeed,
  DashboardInstance,
  FeedSummary,
} from '../../protocol/rows/dashboard.ts';
import type { HorizonSummary } from '../../protocol/rows/horizon.ts';
import type { Posture } from '../../protocol/rows/posture.ts';
import type { ListedTreaties } from './dashboard-treaties.ts';
import type { PostureFacts } from './posture.ts';
import { type RecentChange, recentChangeRow } from './recent-changes.ts';
import { connectomeSummary, sequenceValue } from './recognition-graph.ts';
import type { RecognitionIndex } from './recognition-index.ts';
import { type CompletedTrustCycle, trustCycleSummary } from './trust-cycle.ts';

export interface DashboardSources {
  readonly networkName: string;
  readonly networkVersion: string;
  readonly ready: boolean;
  readonly activeNodes: number;
  /** Certificates that are not revoked. */
  readonly trackedNodes: number;
  readonly recognition: RecognitionIndex;
  readonly treaties: ListedTreaties;
  /** The newest imported feed of each issuer. */
  readonly feeds: readonly ImportedFeed[];
  /** The newest completed trust cycle; null before the first. */
  readonly trustCycle: CompletedTrustCycle | null;
  /** Newest first. */
  readonly recentChanges: readonly RecentChange[];
  readonly horizon: HorizonSummary;
  /** Null where no instance is linked to others. */
  readonly instances: readonly DashboardInstance[] | null;
  /** What is wrong, given what is counted here. */
  judge(counted: Pick<PostureFacts, 'treaties' | 'staleFeeds' | 'trustCycle'>): Posture;
}

const HOUR = 3_600_000;
const FRESH_HOURS = 24;
const WATCH_HOURS = 72;

const LINKS = {
  dashboard_json: '/dashboard.json',
  connectome: '/connectome',
  connectome_json: '/connectome.json',
  recognition_treaties: '/recognition-treaties',
  recognition_graph: '/recognition-graph',
  api_reference: '/api-reference',
  cli_reference: '/cli-reference',
};

export function dashboard(sources: DashboardSources, now: number): WithText<Dashboard, 'treaties'> {
  const { networkName: id, networkVersion: version, recognition, feeds, ready } = sources;
  const { treaties, summary: treatySummary } = sources.treaties;
  const feedRows = feeds
    .toSorted((a, b) => compareCodePoints(a.issuer, b.issuer))
    .map((feed) => feedRow(feed, now));
  const feedSummary = summarizeFeeds(feedRows);
  const trustCycle = trustCycleSummary(sources.trustCycle, now);
  const posture = sources.judge({
    treaties: treatySummary,
    staleFeeds: feedSummary.stale_count,
    trustCycle,
  });
  return {
    sovereign: { id, version },
    readiness: { status: ready ? 'ready' : 'not_ready' },
    nodes: { active: sources.activeNodes, tracked: sources.trackedNodes },
    connectome_summary: connectomeSummary(recognition, now),
    treaty_summary: treatySummary,
    treaties,
    revocation_feed_summary: feedSummary,
    revocation_feeds: feedRows,
    trust_cycle_summary: trustCycle,
    recent_changes: sources.recentChanges.map(recentChangeRow),
    horizon_summary: sources.horizon,
    ...(sources.instances === null ? {} : { instances: [...sources.instances] }),
    posture,
    warnings: posture.findings.map(({ sentence }) => sentence),
    links: LINKS,
  };
}

function feedRow(feed: ImportedFeed, now: number): DashboardFeed {
  const age = Math.floor((now - feed.importedAt) / HOUR);
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
