/**
 * Counts refusals of unauthenticated callers. Anyone can cause any number of them, so the number of resulting writes is
 * limited: the first few from a source within a minute are audited individually; the rest are counted, and summarized in
 * one entry per source, event and reason at the end of the minute.
 */
import type { JsonObject } from '../../base/json/value.ts';
import type { AuditEvent } from '../../protocol/rows/audit-event.ts';
import type { Authority } from '../authority.ts';
import type { UnitOfWork } from '../subjects/unit-of-work.ts';
import type { Run } from './execute.ts';

export type RefusalEvent = Extract<
  AuditEvent,
  | 'admin_auth_failed'
  | 'node_auth_failed'
  | 'join_rejected'
  | 'heartbeat_rejected'
  | 'renewal_rejected'
>;

/** The details that all audited refusals have in common; events and reasons come from fixed lists. */
export interface RefusalDetails extends JsonObject {
  readonly reason: string;
  readonly remote_addr: string;
}

/** How many refusals from one source are audited individually within a time window. */
export interface SingleRefusals {
  readonly count: number;
  readonly windowMs: number;
}

export interface RefusalSummary {
  readonly event: RefusalEvent;
  readonly reason: string;
  readonly remoteAddr: string;
  readonly count: number;
}

/** The most sources counted separately in one window; refusals of all others are summarized together. */
const MAX_SOURCES = 100;
const OTHER_SOURCES = 'other';

/** `elapsed` is a monotonic clock. Without a limit, every refusal gets its own entry. */
export function createRefusalAudit(limit: SingleRefusals | null, elapsed: () => number) {
  let began = elapsed();
  const singles = new Map<string, number>();
  const counted = new Map<string, RefusalSummary>();

  function sourceOf(remoteAddr: string): string {
    return singles.has(remoteAddr) || singles.size < MAX_SOURCES ? remoteAddr : OTHER_SOURCES;
  }

  function take(): readonly RefusalSummary[] {
    const summaries = [...counted.values()];
    singles.clear();
    counted.clear();
    began = elapsed();
    return summaries;
  }

  return {
    /** Returns true if the refusal gets its own entry; otherwise counts it. */
    isSingle(event: RefusalEvent, { reason, remote_addr }: RefusalDetails): boolean {
      if (limit === null) return true;
      const remoteAddr = sourceOf(remote_addr);
      const before = singles.get(remoteAddr) ?? 0;
      if (before < limit.count) {
        singles.set(remoteAddr, before + 1);
        return true;
      }
      const key = `${remoteAddr} ${event} ${reason}`;
      const count = (counted.get(key)?.count ?? 0) + 1;
      counted.set(key, { event, reason, remoteAddr, count });
      return false;
    },
    /** Returns and clears the summaries of a finished window or, if `all` is set, of the current one. */
    takeSummaries(all: boolean): readonly RefusalSummary[] {
      return limit !== null && (all || elapsed() - began >= limit.windowMs) ? take() : [];
    },
  };
}

/** Counts a refusal, and audits it unless its source has exceeded the limit for single entries. */
export function auditRefusal(
  na: Authority,
  unit: UnitOfWork,
  event: RefusalEvent,
  details: RefusalDetails,
): void {
  na.countRefusal(event, details.reason);
  if (na.refusals.isSingle(event, details)) unit.auditRefusal(event, details);
}

/** Writes the summaries that are due. */
export const summarizeRefusals: Run<{ readonly all: boolean }> = (na, unit, { all }) => {
  for (const { event, reason, remoteAddr, count } of na.refusals.takeSummaries(all)) {
    unit.audit('refusals_summarized', { event, reason, remote_addr: remoteAddr, count });
  }
  return null;
};
