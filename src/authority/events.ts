/**
 * The audit log as events. Edges read them in parts [events-2], and may wait for events that have not happened yet;
 * webhooks receive them [events-5]. And the end of the log, for event readers and for the dashboard.
 */
import { JsonText } from '../base/json/write.ts';
import { Refusal } from '../protocol/refusals.ts';
import type { AuditEntry, SealedEntry } from '../store/store.ts';
import {
  type CompletedTrustCycle,
  isShown,
  RECENT_CHANGES,
  type RecentChange,
} from './audit/recent-changes.ts';
import type { Authority } from './authority.ts';
import type { Handler } from './engine/admission.ts';
import { AsyncResult } from './engine/execute.ts';

/** Readers that are further behind read from the store. */
const MOST_HELD = 1024;

/**
 * In the form in which entries are sent to event readers [events-2]. Each is serialized once for all readers. While
 * nobody is reading, nothing is kept.
 */
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

/** A part ends early once its text is longer than this. */
const MOST_CHARACTERS = 32 * 1024;

/** Admits a reader; returns the length of the log. */
export const openEvents: Handler<'openEvents'> = (na, { after: given }) => {
  const after = given ?? 0;
  const length = na.eventTail.length();
  if (after > length) throw new Refusal('after_ahead', { log_size: length });
  return { log_size: length };
};

/** The events after an entry, one per line; empty if there are none. */
export const readEvents: Handler<'readEvents'> = (na, { after, most, waits }) => {
  const { eventTail } = na;
  if (after < eventTail.length()) return eventsAfter(na, after, most);
  if (!waits) return new JsonText('');
  return new AsyncResult(eventTail.next().then(() => linesOf(eventTail.after(after, most) ?? [])));
};

function eventsAfter({ eventTail, store }: Authority, after: number, most: number) {
  const held = eventTail.after(after, most);
  if (held !== null) return linesOf(held);
  // The store may return entries that are not settled yet, which must not be sent.
  const settled = Math.min(most, eventTail.length() - after);
  return new AsyncResult(
    store.auditAfter(after, settled).then((lines) => linesOf(events(after, lines))),
  );
}

function events(after: number, lines: readonly string[]): string[] {
  return lines.map((line, index) => {
    const textAt = line.indexOf('{');
    return eventText(after + index + 1, line.slice(0, textAt), line.slice(textAt));
  });
}

function linesOf(made: readonly string[]): JsonText {
  let characters = 0;
  const end = made.findIndex((text) => {
    characters += text.length;
    return characters > MOST_CHARACTERS;
  });
  return new JsonText(made.slice(0, end < 0 ? made.length : end + 1).join('\n'));
}

/** Adds new webhooks, removes the ones that are no longer configured, and returns the position of each. */
export const openWebhooks: Handler<'openWebhooks'> = (na, unit, { ids, after }) => {
  for (const [id] of na.subjects.allCommitted('webhook')) {
    if (!ids.includes(id)) unit.remove('webhook', id);
  }
  const end = na.eventTail.length();
  for (const id of ids) {
    if (unit.current('webhook', id) !== undefined) continue;
    unit.send('webhook', id, { type: 'begin', after: Math.min(after ?? end, end) });
  }
  return Object.fromEntries(ids.map((id) => [id, unit.existing('webhook', id).delivered]));
};

/** Saves how far the log was posted. This is not audited, because the audit entries would be posted as well. */
export const saveWebhooks: Handler<'saveWebhooks'> = (_na, unit, cursors) => {
  for (const [id, index] of Object.entries(cursors)) {
    if (index > unit.existing('webhook', id).delivered) {
      unit.send('webhook', id, { type: 'deliver', index });
    }
  }
  return null;
};
