/** The summary of the most recent trust cycle [core-6-5]. */
import { displayTime, formatInstant } from '../../base/timestamp.ts';
import type { TrustCycleSummary } from '../../protocol/rows/dashboard.ts';

export interface CompletedTrustCycle {
  readonly passed: boolean;
  /** Milliseconds since the epoch. */
  readonly completedAt: number;
  readonly digest: string;
}

const HOUR = 3_600_000;
const FRESH_HOURS = 30;
const WATCH_HOURS = 48;

const NOT_OBSERVED: TrustCycleSummary = {
  status: 'not_observed',
  freshness: 'none',
  completed_at: null,
  completed_at_display: '',
  age_hours: null,
};

export function trustCycleSummary(
  cycle: CompletedTrustCycle | null,
  now: number,
): TrustCycleSummary {
  if (cycle === null) return NOT_OBSERVED;
  const completedAt = formatInstant(cycle.completedAt);
  // A clock that was set back must not make an age negative.
  const age = Math.max(0, Math.floor((now - cycle.completedAt) / HOUR));
  return {
    status: cycle.passed ? 'verified' : 'failed',
    freshness: freshnessOf(age),
    completed_at: completedAt,
    completed_at_display: displayTime(completedAt),
    age_hours: age,
    digest: cycle.digest,
  };
}

function freshnessOf(ageHours: number): 'fresh' | 'watch' | 'stale' {
  if (ageHours <= FRESH_HOURS) return 'fresh';
  return ageHours <= WATCH_HOURS ? 'watch' : 'stale';
}
