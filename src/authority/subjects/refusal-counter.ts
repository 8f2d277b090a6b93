/**
 * Refusals of unauthenticated callers. Anyone can cause any number of them, so the writes they cause are
 * bounded: the first few of a source in a minute are audited individually; the others are counted and
 * become one entry per source, event and reason at the end of the minute.
 */
import type { JsonObject } from '../../base/json/value.ts';
import type { AuditEvent } from '../../protocol/rows/audit-event.ts';

export type RefusalEvent = Extract<
  AuditEvent,
  | 'admin_auth_failed'
  | 'node_auth_failed'
  | 'join_rejected'
  | 'heartbeat_rejected'
  | 'renewal_rejected'
>;

/** What every audited refusal has in common; events and reasons are closed lists. */
export interface RefusalDetails extends JsonObject {
  readonly reason: string;
  readonly remote_addr: string;
}

/** How many refusals of one source are audited individually, and in what time. */
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

export interface RefusalAudit {
  /** True when the refusal gets an entry of its own; otherwise it is counted. */
  isSingle(event: RefusalEvent, details: RefusalDetails): boolean;
  /** Returns and clears the summaries of past windows; with `all`, also of the current one. */
  takeSummaries(all: boolean): readonly RefusalSummary[];
}

/** The most sources counted separately in one window; refusals of all others are summarized together. */
const MAX_SOURCES = 100;
const OTHER_SOURCES = 'other';

/** `elapsed` is the monotonic clock. Without a limit, every refusal gets its own entry. */
export function createRefusalAudit(
  limit: SingleRefusals | null,
  elapsed: () => number,
): RefusalAudit {
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
    isSingle(event, { reason, remote_addr }) {
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
    takeSummaries(all) {
      return limit !== null && (all || elapsed() - began >= limit.windowMs) ? take() : [];
    },
  };
}
