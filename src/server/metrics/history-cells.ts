/** Reads the values of the history from the metrics, so that nothing is counted twice. */
import type { MetricsReport } from '../../edge/metrics.ts';
import { boundsOf, CELLS, placeOf } from '../../protocol/contract/history-cells.ts';
import type { SeriesName } from '../../protocol/rows/history.ts';

type Labels = Readonly<Record<string, string | number | undefined>>;

/** The counts that each counter contributes to. */
const COUNTS: Readonly<Record<string, (labels: Labels) => readonly SeriesName[]>> = {
  mesh_na_http_requests_total: ({ method, route, status }) =>
    ofRequest(method === 'POST' && route === '/heartbeat', Number(status)),
  mesh_na_requests_shed_total: () => ['shed'],
  mesh_na_verifications_total: ({ event, accepted }) =>
    ATTESTATIONS.has(String(event))
      ? ['verifications', accepted === 'true' ? 'attestations_accepted' : 'attestations_refused']
      : ['verifications'],
  mesh_na_auth_failed_total: ({ kind }) => [
    kind === 'operator' ? 'operator_auth_failures' : 'node_auth_failures',
  ],
  mesh_na_audit_events_total: ({ event }) => {
    const own = EVENTS[String(event)];
    return own === undefined ? ['events'] : ['events', own];
  },
  mesh_na_clock_steps_total: () => ['clock_steps'],
};

/** The time that each histogram measures. */
const TIMES: Readonly<Record<string, (labels: Labels) => SeriesName>> = {
  mesh_na_http_request_duration_seconds: ({ route }) => groupOf(String(route)),
  mesh_na_store_seconds: ({ work }) => (work === 'commit' ? 'commit_time' : 'flush_time'),
};

const REFUSED: Readonly<Record<number, SeriesName>> = {
  400: 'refused_400',
  401: 'refused_401',
  403: 'refused_403',
  404: 'refused_404',
  409: 'refused_409',
  429: 'refused_429',
};

const ATTESTATIONS: ReadonlySet<string> = new Set([
  'membership_attestation_verified',
  'treaty_attestation_verified',
]);

const EVENTS: Readonly<Record<string, SeriesName>> = {
  invite_created: 'invites',
  certificate_issued: 'joins',
  certificate_renewed: 'renewals',
  certificate_revoked: 'revocations',
  policy_published: 'policies_activated',
  policy_rolled_back: 'policies_activated',
  operator_key_added: 'operator_keys_added',
  operator_key_revoked: 'operator_keys_revoked',
  state_restored: 'restores',
  authority_key_activated: 'authority_keys_activated',
  recognition_treaty_issued: 'treaties_issued',
  recognition_treaty_revoked: 'treaties_revoked',
  membership_attestation_issued: 'attestations_issued',
  membership_attestation_revoked: 'attestations_revoked',
  sovereign_revocation_feed_imported: 'feeds_imported',
  sovereign_revocation_feed_rejected: 'feeds_rejected',
};

/** All that was counted so far, by all edges and the authority. Levels are 0, because a level is not counted. */
export function cellsIn(reports: readonly MetricsReport[]): number[] {
  const cells = new Array<number>(CELLS).fill(0);
  const add = (at: number, count: number) => {
    cells[at] = (cells[at] ?? 0) + count;
  };
  for (const { name, values } of reports.flat()) {
    const counts = COUNTS[name];
    const time = TIMES[name];
    for (const { labels, value, ...more } of values) {
      for (const series of counts?.(labels) ?? []) add(placeOf(series).start, value);
      if (time === undefined || !isBucket(more)) continue;
      const series = time(labels);
      const { start, end } = placeOf(series);
      const bucket = boundsOf(series).indexOf(Number(labels.le));
      const at = bucket === -1 ? end - 1 : start + bucket;
      // Each bucket of the metric includes those before it.
      add(at, value);
      if (at + 1 < end) add(at + 1, -value);
    }
  }
  return cells;
}

/** A histogram also has the sum and the count of its values. */
function isBucket(value: { readonly metricName?: string }): boolean {
  return value.metricName?.endsWith('_bucket') === true;
}

function ofRequest(isHeartbeat: boolean, status: number): readonly SeriesName[] {
  if (status >= 500) return ['requests', 'failed'];
  if (status >= 400) return ['requests', REFUSED[status] ?? 'refused_other'];
  return isHeartbeat ? ['requests', 'heartbeats'] : ['requests'];
}

const ENROLLMENT: ReadonlySet<string> = new Set(['/join', '/renew']);

function groupOf(route: string): SeriesName {
  if (route === '/heartbeat') return 'heartbeat_time';
  if (ENROLLMENT.has(route) || route.startsWith('/agents')) return 'enrollment_time';
  if (route.startsWith('/admin/') || route === '/events') return 'operator_time';
  if (route.includes('/verify') || route === '/connectome/trust-path') return 'verification_time';
  return 'other_time';
}
