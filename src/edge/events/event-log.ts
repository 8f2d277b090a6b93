/**
 * The audit log, as an edge sends it to event readers [events-2]. The newest events are in memory; earlier ones are
 * read from the authority a page at a time, and recently used pages are cached. Readers at the same position share one
 * rendering.
 */
import { createTurns } from '../../base/work.ts';

/** The next piece for a reader. */
export interface Piece {
  readonly text: string;
  /** The index of its last event. */
  readonly last: number;
}

/** Reads at most this many events after an index; each is a line of JSON. */
export type ReadPage = (after: number, most: number) => Promise<readonly string[]>;

const MOST_HELD = 2048;
/** Pages end at multiples of this size, so that readers that began at different positions soon share them. */
const PAGE_EVENTS = 64;
const MOST_PAGES = 64;
const MOST_CHARACTERS = 32 * 1024;

interface Page {
  readonly after: number;
  readonly piece: Piece;
}

export function createEventLog(readPage: ReadPage) {
  let end = 0;
  let held: string[] = [];
  let newest = new Map<number, Piece>();
  /** In the order of last use, least recent first. */
  const pages = new Map<number, Page>();
  const reading = new Map<number, Promise<Page>>();
  const turns = createTurns();

  function newestAfter(index: number): Piece {
    const known = newest.get(index);
    if (known !== undefined) return known;
    const piece = pieceOf(index, startOf(held.slice(held.length - (end - index))));
    newest.set(index, piece);
    return piece;
  }

  /** Sequential: for any number of readers, the authority reads one page at a time for this edge. */
  function read(after: number): Promise<Page> {
    const underWay = reading.get(after);
    if (underWay !== undefined) return underWay;
    const page = turns.run(async () => {
      const events = await readPage(after, PAGE_EVENTS - (after % PAGE_EVENTS));
      if (events.length === 0) throw new Error(`There are no events after ${after}`);
      return { after, piece: pieceOf(after, events) };
    });
    reading.set(after, page);
    void page.then(keep, () => undefined).finally(() => reading.delete(after));
    return page;
  }

  function keep(page: Page): void {
    pages.delete(page.after);
    pages.set(page.after, page);
    for (const oldest of pages.keys()) {
      if (pages.size <= MOST_PAGES) break;
      pages.delete(oldest);
    }
  }

  return {
    /** The index of the last known event. */
    end: () => end,
    /** Restarts after the event with this index. */
    beginAfter(index: number): void {
      end = index;
      held = [];
      newest = new Map();
    },
    append(events: readonly string[]): void {
      end += events.length;
      held.push(...events);
      if (held.length >= 2 * MOST_HELD) held = held.slice(-MOST_HELD);
      newest = new Map();
    },
    /**
     * The next events after this index; null if none are known. A promise if they must be read first; it rejects if
     * that fails.
     */
    after(index: number): Piece | null | Promise<Piece> {
      if (index >= end) return null;
      if (index >= end - held.length) return newestAfter(index);
      const page = pages.get(index);
      if (page === undefined) return read(index).then(({ piece }) => piece);
      keep(page);
      return page.piece;
    },
  };
}

/** [events-3] */
function pieceOf(after: number, events: readonly string[]): Piece {
  const texts = events.map((event, index) => `id: ${after + index + 1}\ndata: ${event}\n\n`);
  return { text: texts.join(''), last: after + events.length };
}

/** The first events, as many as are sent in one piece. */
function startOf(events: readonly string[]): readonly string[] {
  let characters = 0;
  const end = events.findIndex((event) => {
    characters += event.length;
    return characters > MOST_CHARACTERS;
  });
  return end < 0 ? events : events.slice(0, end + 1);
}
