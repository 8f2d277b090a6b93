/** The end of the audit log: for event readers, and for the dashboard. */
import type { AuditEntry, SealedEntry } from '../../store/store.ts';
import {
  type CompletedTrustCycle,
  isShown,
  RECENT_CHANGES,
  type RecentChange,
} from './recent-changes.ts';

/** Readers that are further behind read from the store. */
const MOST_HELD = 1024;

/**
 * In the form in which entries are sent to event readers [events-2]. Each is serialized once for all readers. While nobody
 * is reading, nothing is kept.
 */
export type EventTail = ReturnType<typeof createEventTail>;

export function createEventTail(logged: number) {
  let length = logged;
  let held: string[] = [];
  let waiting: (() => void)[] = [];
  /** If no reader asks before the log reaches this length, there are no readers left. */
  let readUntil = 0;

  function noteReader(): void {
    readUntil = length + MOST_HELD;
  }

  return {
    /** The number of audit log entries on disk. */
    length: () => length,
    /** Adds entries that were committed. */
    add(entries: readonly SealedEntry[]) {
      if (entries.length === 0) return;
      if (waiting.length === 0 && length >= readUntil) {
        held = [];
        length += entries.length;
        return;
      }
      for (const { entry, text } of entries) {
        length += 1;
        held.push(eventText(length, entry.hash, text));
      }
      if (held.length >= 2 * MOST_HELD) held = held.slice(-MOST_HELD);
      for (const wake of waiting) wake();
      waiting = [];
    },
    /** At most `most` events after the entry with this number; null if they are no longer kept. */
    after(entry: number, most: number): readonly string[] | null {
      noteReader();
      const first = held.length - (length - entry);
      return first < 0 ? null : held.slice(first, first + most);
    },
    /** Resolves when there are more events. */
    next(): Promise<void> {
      noteReader();
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** The event for an entry; `index` is its number in the log, and `text` is what the hash covers. */
export function eventText(index: number, hash: string, text: string): string {
  return `{"entry":${text},"hash":"${hash}","index":${index}}`;
}

/** The parts of the audit log that the dashboard shows. */
export function createRecentAudit() {
  let changes: readonly RecentChange[] = [];
  let trustCycle: CompletedTrustCycle | null = null;
  let newestAt = '';
  return {
    add(entry: AuditEntry) {
      const { event_type, created_at, details } = entry;
      newestAt = created_at;
      if (isShown(event_type)) changes = [entry, ...changes].slice(0, RECENT_CHANGES);
      if (event_type !== 'trust_cycle_completed') return;
      const { result, digest } = details;
      trustCycle = {
        passed: result === 'passed',
        completedAt: Date.parse(created_at),
        digest: String(digest),
      };
    },
    /** The most recent events that the dashboard shows, newest first. */
    changes: (): readonly RecentChange[] => changes,
    /** The most recently completed trust cycle. */
    trustCycle: (): CompletedTrustCycle | null => trustCycle,
    /** When the newest entry was added, in milliseconds since the epoch; 0 if there is none. */
    newestAt: () => (newestAt === '' ? 0 : Date.parse(newestAt)),
  };
}
