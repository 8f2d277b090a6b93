/**
 * Recent trust changes and the last trust cycle, for the public dashboard [core-6-5], [core-g36]. Only the public fields of each audit event are
 * shown, never an address, a key or a token fingerprint.
 */

import { HOUR_MS } from '../../base/duration.ts';
import type { JsonObject, JsonValue } from '../../base/json/value.ts';
import { displayTime, formatInstant } from '../../base/timestamp.ts';
import type { RecentChangeRow, TrustCycleSummary } from '../../protocol/rows/dashboard.ts';
import type { SealedEntry, SubjectWrite } from '../../store/store.ts';

export interface RecentChange {
  readonly event_type: string;
  readonly created_at: string;
  readonly details: JsonObject;
}

export const RECENT_CHANGES = 8;

/** Events that are relevant to trust, with the names of their public details. */
const SHOWN: Readonly<
  Record<string, { readonly title: string; readonly fields: readonly string[] }>
> = {
  certificate_issued: { title: 'Certificate issued', fields: ['cert_id', 'roles'] },
  certificate_renewed: {
    title: 'Certificate renewed',
    fields: ['old_cert_id', 'new_cert_id'],
  },
  certificate_revoked: {
    title: 'Certificate revoked',
    fields: ['cert_id', 'reason', 'crl_sequence'],
  },
  operator_key_revoked: { title: 'Operator key revoked', fields: ['key_id', 'reason'] },
  authority_succession_staged: {
    title: 'Next authority key staged',
    fields: ['sequence', 'kind', 'activates_at'],
  },
  authority_succession_canceled: {
    title: 'Next authority key withdrawn',
    fields: ['sequence', 'kind', 'activates_at'],
  },
  authority_key_activated: { title: 'Authority key replaced', fields: ['sequence', 'kind'] },
  authority_key_rolled_back: { title: 'Authority key rolled back', fields: ['sequence'] },
  authority_key_retired: { title: 'Previous authority key retired', fields: [] },
  policy_published: { title: 'Policy published', fields: ['policy_id'] },
  policy_rolled_back: { title: 'Policy rolled back', fields: ['policy_id'] },
  membership_attestation_issued: {
    title: 'Attestation issued',
    fields: ['attestation_id', 'issuer_sovereign_id', 'subject_id', 'roles'],
  },
  membership_attestation_revoked: {
    title: 'Attestation revoked',
    fields: ['attestation_id', 'reason'],
  },
  recognition_policy_saved: {
    title: 'Recognition policy set',
    fields: ['policy_id', 'local_sovereign_id', 'recognized_issuer_count'],
  },
  recognition_treaty_issued: {
    title: 'Treaty issued',
    fields: ['treaty_id', 'issuer_sovereign_id', 'subject_sovereign_id', 'allowed_roles'],
  },
  recognition_treaty_revoked: { title: 'Treaty revoked', fields: ['treaty_id', 'reason'] },
  recognition_treaty_followed: {
    title: 'Treaty replaced for another key',
    fields: ['treaty_id', 'successor_treaty_id', 'subject_sovereign_id', 'sequence'],
  },
  recognition_treaty_endpoint_set: {
    title: 'Address of a treaty set',
    fields: ['treaty_id', 'endpoint'],
  },
  sovereign_revocation_feed_imported: {
    title: 'Revocation feed imported',
    fields: ['feed_id', 'issuer_sovereign_id', 'sequence', 'revoked_count'],
  },
  sovereign_revocation_feed_rejected: {
    title: 'Revocation feed rejected',
    fields: ['feed_id', 'issuer_sovereign_id', 'sequence', 'reason'],
  },
};

export function isShown(eventType: string): boolean {
  return Object.hasOwn(SHOWN, eventType);
}

/** The kinds of subjects whose changes are visible on the dashboard. */
const SHOWN_KINDS: ReadonlySet<string> = new Set([
  'authority-key',
  'certificate',
  'recognition-treaty',
  'revocation-feed',
]);

/** Refusals deliberately do not count as changes, because anyone can cause them. */
export function changesDashboard(
  writes: readonly SubjectWrite[],
  audit: readonly SealedEntry[],
): boolean {
  return (
    writes.some(({ kind }) => SHOWN_KINDS.has(kind)) ||
    audit.some(
      ({ entry }) => isShown(entry.event_type) || entry.event_type === 'trust_cycle_completed',
    )
  );
}

export function recentChangeRow({
  event_type,
  created_at,
  details,
}: RecentChange): RecentChangeRow {
  const { title = event_type, fields = [] } = SHOWN[event_type] ?? {};
  const shown = Object.fromEntries(
    fields.filter((name) => details[name] !== undefined).map((name) => [name, details[name]]),
  ) as JsonObject;
  return {
    event_type,
    created_at,
    created_at_display: displayTime(created_at),
    details: shown,
    summary: {
      title,
      state: stateOf(event_type),
      fields: Object.entries(shown).map(([label, value]) => ({ label, value: fieldText(value) })),
    },
  };
}

function stateOf(eventType: string): RecentChangeRow['summary']['state'] {
  if (eventType.endsWith('_rejected')) return 'rejected';
  if (eventType.endsWith('_revoked')) return 'revoked';
  return 'recorded';
}

function fieldText(value: JsonValue): string {
  return Array.isArray(value) ? value.join(', ') : String(value);
}

export interface CompletedTrustCycle {
  readonly passed: boolean;
  /** Milliseconds since the epoch. */
  readonly completedAt: number;
  readonly digest: string;
}

const FRESH_HOURS = 30;
const WATCH_HOURS = 48;
/** Ages are in whole hours. */
export const CYCLE_STALE_MS = (WATCH_HOURS + 1) * HOUR_MS;

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
  const age = Math.max(0, Math.floor((now - cycle.completedAt) / HOUR_MS));
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
