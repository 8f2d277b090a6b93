import type { AuditEntry } from '../../store/store.ts';
import { isShown, RECENT_CHANGES, type RecentChange } from '../views/recent-changes.ts';

/** The newest of the audit events that the dashboard shows. */
export interface RecentChanges {
  add(entry: AuditEntry): void;
  /** Newest first. */
  list(): readonly RecentChange[];
}

export function createRecentChanges(): RecentChanges {
  let newest: RecentChange[] = [];
  return {
    add(entry) {
      if (isShown(entry.event_type)) newest = [entry, ...newest].slice(0, RECENT_CHANGES);
    },
    list: () => newest,
  };
}
