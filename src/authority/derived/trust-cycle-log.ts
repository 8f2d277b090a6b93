import type { AuditEntry } from '../../store/store.ts';
import type { CompletedTrustCycle } from '../views/trust-cycle.ts';

/** The newest completed trust cycle, from the audit log. */
export interface TrustCycleLog {
  add(entry: AuditEntry): void;
  newest(): CompletedTrustCycle | null;
}

export function createTrustCycleLog(): TrustCycleLog {
  let newest: CompletedTrustCycle | null = null;
  return {
    add({ event_type, created_at, details }) {
      if (event_type !== 'trust_cycle_completed') return;
      const { result, digest } = details;
      newest = {
        passed: result === 'passed',
        completedAt: Date.parse(created_at),
        digest: String(digest),
      };
    },
    newest: () => newest,
  };
}
