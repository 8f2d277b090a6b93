/**
 * The end of the audit log as it is sent to readers of events [events-2]: every entry is written once for all of them.
 * While nobody reads, nothing is held.
 */
import type { SealedEntry } from '../../store/store.ts';

/** Anyone who is further behind reads from the store. */
const MOST_HELD = 1024;

export interface EventTail {
  /** Entries of the audit log that are on disk. */
  length(): number;
  /** These entries were committed. */
  add(entries: readonly SealedEntry[]): void;
  /** The events after the entry with this number, at most this many; null when they are no longer held. */
  after(entry: number, most: number): readonly string[] | null;
  /** Resolves when there are further events. */
  next(): Promise<void>;
}

export function createEventTail(logged: number): EventTail {
  let length = logged;
  let held: string[] = [];
  let waiting: (() => void)[] = [];
  /** Unless somebody asks before the log is this long, nobody reads any more. */
  let readUntil = 0;

  function noteReader(): void {
    readUntil = length + MOST_HELD;
  }

  return {
    length: () => length,
    add(entries) {
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
    after(entry, most) {
      noteReader();
      const first = held.length - (length - entry);
      return first < 0 ? null : held.slice(first, first + most);
    },
    next() {
      noteReader();
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** The event of an entry, whose number in the log is its index; `text` is what the hash covers. */
export function eventText(index: number, hash: string, text: string): string {
  return `{"entry":${text},"hash":"${hash}","index":${index}}`;
}
