/** The parts of the audit log that the dashboard shows. */
import type { AuditEntry } from '../../store/store.ts';
import { isShown, RECENT_CHANGES, type RecentChange } from '../views/recent-changes.ts';
import type { CompletedTrustCycle } from '../views/trust-cycle.ts';

export interface RecentAudit {
  add(entry: AuditEntry): void;
  /** The most recent events that the dashboard shows, newest first. */
  changes(): readonly RecentChange[];
  /** The most recently completed trust cycle. */
  trustCycle(): CompletedTrustCycle | null;
}

export function createRecentAudit(): RecentAudit {
  let changes: readonly RecentChange[] = [];
  let trustCycle: CompletedTrustCycle | null = null;
  return {
    add(entry) {
      const { event_type, created_at, details } = entry;
      if (isShown(event_type)) changes = [entry, ...changes].slice(0, RECENT_CHANGES);
      if (event_type !== 'trust_cycle_completed') return;
      const { result, digest } = details;
      trustCycle = {
        passed: result === 'passed',
        completedAt: Date.parse(created_at),
        digest: String(digest),
      };
    },
    changes: () => changes,
    trustCycle: () => trustCycle,
  };
}
