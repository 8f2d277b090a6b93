/**
 * Once a minute, reads what this instance has counted since the last time from its metrics, and gives it to the active instance.
 * What the active instance does not take is given again, so that nothing is missing after a change of the active instance.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { problemText } from '../base/error-message.ts';
import type { Logger } from '../base/log/logger.ts';
import type { MetricsReport } from '../edge/metrics.ts';
import type { Answer } from '../protocol/contract/calls.ts';
import {
  boundsOf,
  CELLS,
  type HistoryPart,
  mergeCells,
  placeOf,
  type SeriesName,
} from '../protocol/rows/history.ts';
import type { AuthorityCounts } from './metrics/state.ts';

export interface HistoryRecorderOptions {
  /** Identifies this process among those of the last days. */
  readonly source: number;
  now(): number;
  /** The metrics of this instance so far. */
  reports(): Promise<readonly MetricsReport[]>;
  /** Answers `AuthorityCounts`, if this instance is active. */
  counts(): Promise<Answer>;
  /** Bytes; null if not known. */
  diskFree(): number | null;
  record(part: HistoryPart): Answer | Promise<Answer>;
  readonly logger: Logger;
}

const MINUTE_MS = 60_000;
/** How many parts are kept while no active instance takes them. */
const MOST_WAITING = 60;
/** How long a part may delay the end of the process. */
const PATIENCE_MS = 1000;
/** How often the delay of the event loop is measured. */
const LOOP_RESOLUTION_MS = 50;

export function createHistoryRecorder(options: HistoryRecorderOptions) {
  const { source, now, logger } = options;
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  let minute = minuteAt(now());
  let counted: readonly number[] = [];
  let number = 0;
  let waiting: HistoryPart[] = [];
  let giving: Promise<void> | null = null;

  async function take(): Promise<HistoryPart> {
    const measured = await levels(options, loop);
    const all = cellsIn(await options.reports());
    const cells = all.map((count, i) => count - (counted[i] ?? 0));
    counted = all;
    for (const [name, value] of measured) {
      const { start } = placeOf(name);
      mergeCells(cells, [...new Array<number>(start), 1, value, value], start, start + 3);
    }
    number += 1;
    return { source, number, minute, cells };
  }

  async function give(): Promise<void> {
    for (let part = waiting[0]; part !== undefined; part = waiting[0]) {
      const answer = await options.record(part);
      if (!answer.ok) return;
      waiting = waiting.filter((other) => other !== part);
    }
  }

  function noteFailure(cause: unknown): void {
    logger.write('ERROR', 'history', `A minute could not be recorded: ${problemText(cause)}`);
  }

  async function recordNow(): Promise<void> {
    waiting = [...waiting, await take()].slice(-MOST_WAITING);
    giving ??= give()
      .catch(noteFailure)
      .finally(() => {
        giving = null;
      });
    await Promise.race([giving, delay(PATIENCE_MS, undefined, { ref: false })]);
  }

  return {
    /** Records a minute that has ended; call it about once a second. */
    async check(): Promise<void> {
      const current = minuteAt(now());
      if (current === minute) return;
      await recordNow();
      minute = current;
    },
    /** Records the minute that has not ended. */
    async finish(): Promise<void> {
      loop.disable();
      await recordNow().catch(noteFailure);
    },
  };
}

/** What is known at the moment, and measured rather than counted. */
async function levels(
  { counts: ask, diskFree }: HistoryRecorderOptions,
  loop: IntervalHistogram,
): Promise<[SeriesName, number][]> {
  const answer = await ask();
  const counts = answer.ok ? (JSON.parse(answer.json) as AuthorityCounts) : null;
  const found: [SeriesName, number | null | undefined][] = [
    ['active_nodes', counts?.active_nodes],
    ['silent_nodes', counts?.nodes.silent],
    ['unhealthy_nodes', counts?.nodes.unwell],
    ['certificates', counts?.issued_certificates],
    ['crl_length', counts?.revoked_certificates],
    ['memory', process.memoryUsage.rss()],
    ['event_loop_delay', longestDelay(loop)],
    ['disk_free', diskFree()],
  ];
  return found.filter((level): level is [SeriesName, number] => Number.isFinite(level[1]));
}

/** Since it was asked last, in microseconds, beyond the interval between two measurements. */
function longestDelay(loop: IntervalHistogram): number {
  const longest = loop.max / 1000 - LOOP_RESOLUTION_MS * 1000;
  loop.reset();
  return Math.max(0, Math.round(longest));
}

function minuteAt(time: number): number {
  return Math.floor(time / MINUTE_MS);
}

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

/**
 * Reads the values of the history from the metrics, so that nothing is counted twice. All that was counted so far, by
 * all edges and the authority. Levels are 0, because a level is not counted.
 */
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
