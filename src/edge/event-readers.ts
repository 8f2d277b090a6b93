/**
 * The event readers of an edge [events-2]. Each gets its next events as soon as it has accepted the previous ones, so
 * nothing is queued for slow readers. All readers together get a bounded share of the thread's time.
 */
import { problemText } from '../base/error-message.ts';
import type { Logger } from '../base/log/logger.ts';
import type { EdgeRuntime } from '../base/runtime.ts';
import { createPauses, createTurns } from '../base/work.ts';
import type { Call } from '../protocol/contract/calls.ts';
import { writeChunks } from './chunks.ts';
import type { EdgeMetrics } from './metrics.ts';
import type { StreamBody, StreamWriter } from './reply.ts';

/** A reader and its range of events. */
interface EventReader {
  readonly keyId: string;
  /** The index of the event after which the reader begins. */
  readonly after: number;
  /** The index of the last event to send; null to continue with new events. */
  readonly until: number | null;
}

interface EventReadersOptions {
  readonly maxEventReaders: number;
  readonly maxConnections: number;
  readonly call: Call;
  readonly runtime: Pick<EdgeRuntime, 'elapsed'>;
  readonly metrics: Pick<EdgeMetrics, 'eventReaders' | 'eventReaderCut'>;
  readonly logger: Pick<Logger, 'write'>;
}

/** How many readers are served per turn of the event loop, so that other work waits less than a millisecond. */
const READERS_PER_TURN = 64;
/** For each millisecond that readers take, the thread has this many milliseconds for other work. */
const REST = 3;
const LEAST_REST_MS = 0.1;
/** The most new events that are read at once. */
const MOST_EVENTS = 256;

const TICK_MS = 1000;
/** A reader that accepts nothing for this long is ended. */
const STALLED_MS = 10_000;
/** The interval of keep-alives, which let clients detect a lost connection. */
const ALIVE_MS = 15_000;

/** Sent first, so that the response headers arrive before the first event, and then as a keep-alive [events-3]. */
const NOTHING_NEW = ':\n\n';

interface Reading extends EventReader {
  /** Null until the response has begun. */
  writer: StreamWriter | null;
  /** The index of the last event sent to this reader. */
  last: number;
  /** The next piece, already read. */
  piece: Piece | null;
  isReading: boolean;
  isQueued: boolean;
  /** When the reader stalled; null while it accepts data. */
  stalledAt: number | null;
  sentAt: number;
}

export type EventReaders = ReturnType<typeof createEventReaders>;

/** The readers of an edge, limited to half of its connections. */
export function createEventReaders(options: EventReadersOptions) {
  const { call, metrics, maxEventReaders, maxConnections } = options;
  const { elapsed } = options.runtime;
  const most = Math.min(maxEventReaders, Math.ceil(maxConnections / 2));
  const readers = new Set<Reading>();
  const revokedKeys = new Set<string>();
  const log = createEventLog(async (after, most) => {
    const answer = await call('readEvents', { after, most, waits: false });
    if (!answer.ok) throw new Error(`The events cannot be read: ${answer.refusal}`);
    return linesIn(answer.json);
  });
  let queue: Reading[] = [];
  let isScheduled = false;
  const rests = createPauses(elapsed, { perWork: REST });
  let isFollowing = false;
  let isEnded = false;
  let ticking: NodeJS.Timeout | undefined;

  function failed(cause: unknown): void {
    options.logger.write('ERROR', 'events', problemText(cause));
  }

  /** Waits for new events while there are readers. */
  async function follow(): Promise<void> {
    isFollowing = true;
    ticking = setInterval(tick, TICK_MS);
    try {
      while (readers.size > 0) {
        const question = { after: log.end(), most: MOST_EVENTS, waits: true };
        const answer = await call('readEvents', question);
        if (!answer.ok) break;
        happened(linesIn(answer.json));
      }
    } catch (cause) {
      failed(cause);
    }
    clearInterval(ticking);
    isFollowing = false;
    // The readers will reconnect, and get the refusal then if it persists.
    endAll();
    revokedKeys.clear();
  }

  function happened(events: readonly string[]): void {
    log.append(events);
    for (const reader of readers) enqueue(reader);
    for (const event of events) if (REVOKED_KEY.test(event)) endOf(revokedKeyIn(event));
  }

  function endOf(keyId: string): void {
    revokedKeys.add(keyId);
    for (const reader of readers) if (reader.keyId === keyId) finish(reader);
  }

  function enqueue(reader: Reading): void {
    const { writer, isQueued, isReading, stalledAt } = reader;
    if (writer === null || isQueued || isReading || stalledAt !== null) return;
    reader.isQueued = true;
    queue.push(reader);
    schedule();
  }

  function schedule(): void {
    if (isScheduled || queue.length === 0) return;
    isScheduled = true;
    const rest = rests.left();
    if (rest < LEAST_REST_MS) setImmediate(turn);
    else setTimeout(turn, rest);
  }

  function turn(): void {
    isScheduled = false;
    const began = elapsed();
    const some = queue.slice(0, READERS_PER_TURN);
    queue = queue.slice(READERS_PER_TURN);
    for (const reader of some) {
      reader.isQueued = false;
      if (readers.has(reader)) proceed(reader);
    }
    rests.after(began);
    schedule();
  }

  function proceed(reader: Reading): void {
    if (reader.until !== null && reader.last >= reader.until) {
      finish(reader);
      return;
    }
    const piece = reader.piece ?? log.after(reader.last);
    reader.piece = null;
    if (piece instanceof Promise) {
      void readFor(reader, piece);
      return;
    }
    if (piece !== null) {
      reader.last = piece.last;
      send(reader, piece.text);
      enqueue(reader);
    } else if (elapsed() - reader.sentAt >= ALIVE_MS) {
      send(reader, NOTHING_NEW);
    }
  }

  async function readFor(reader: Reading, late: Promise<Piece>): Promise<void> {
    reader.isReading = true;
    try {
      reader.piece = await late;
    } catch (cause) {
      if (readers.has(reader)) failed(cause);
      finish(reader);
    }
    reader.isReading = false;
    enqueue(reader);
  }

  function send(reader: Reading, text: string): void {
    const { writer } = reader;
    if (writer === null) return;
    reader.sentAt = elapsed();
    if (!writeChunks(writer.res, text)) reader.stalledAt = elapsed();
  }

  function tick(): void {
    const now = elapsed();
    for (const reader of readers) {
      if (reader.stalledAt === null) {
        if (now - reader.sentAt >= ALIVE_MS) enqueue(reader);
      } else if (now - reader.stalledAt >= STALLED_MS) {
        metrics.eventReaderCut();
        finish(reader);
      }
    }
  }

  function begin(reader: Reading, writer: StreamWriter): void {
    reader.writer = writer;
    writer.onGone = () => leave(reader);
    writer.res.onWritable(() => {
      reader.stalledAt = null;
      enqueue(reader);
      return true;
    });
    send(reader, NOTHING_NEW);
    if (isEnded || !isFollowing || revokedKeys.has(reader.keyId)) finish(reader);
    else enqueue(reader);
  }

  function leave(reader: Reading): void {
    if (readers.delete(reader)) metrics.eventReaders(-1);
  }

  /** A stalled reader loses data that it has not accepted. */
  function finish(reader: Reading): void {
    const { writer, stalledAt } = reader;
    if (writer === null || !readers.has(reader)) return;
    leave(reader);
    if (writer.aborted) return;
    writer.onGone = null;
    if (stalledAt !== null) writer.res.close();
    else writer.res.cork(() => writer.res.end());
  }

  function endAll(): void {
    for (const reader of readers) finish(reader);
  }

  return {
    /**
     * The response body for a reader, given the length of the log when it was admitted; null if there are too many
     * readers.
     */
    admit(wanted: EventReader, logSize: number): StreamBody | null {
      if (readers.size >= most) return null;
      const reader: Reading = {
        ...wanted,
        writer: null,
        last: wanted.after,
        piece: null,
        isReading: false,
        isQueued: false,
        stalledAt: null,
        sentAt: elapsed(),
      };
      readers.add(reader);
      metrics.eventReaders(1);
      if (!isFollowing) {
        log.beginAfter(logSize);
        void follow();
      }
      return {
        begin: (writer) => begin(reader, writer),
        abandon: () => leave(reader),
      };
    },
    /** Ends all readers, and each later one immediately. */
    end(): void {
      isEnded = true;
      endAll();
      clearInterval(ticking);
    },
  };
}

function linesIn(text: string): readonly string[] {
  return text === '' ? [] : text.split('\n');
}

/** Cannot match inside a string, where quotes are escaped. */
const REVOKED_KEY = /"event_type":"operator_key_revoked"/;

function revokedKeyIn(event: string): string {
  const { entry } = JSON.parse(event) as { entry: { details: { key_id?: string } } };
  return entry.details.key_id ?? '';
}

/**
 * The audit log, as an edge sends it to event readers [events-2]. The newest events are in memory; earlier ones are
 * read from the authority a page at a time, and recently used pages are cached. Readers at the same position share one
 * rendering.
 */

/** The next piece for a reader. */
interface Piece {
  readonly text: string;
  /** The index of its last event. */
  readonly last: number;
}

/** Reads at most this many events after an index; each is a line of JSON. */
type ReadPage = (after: number, most: number) => Promise<readonly string[]>;

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
  const newest = new Map<number, Piece>();
  /** In the order of last use, least recent first. */
  const pages = new Map<number, Page>();
  const reading = new Map<number, Promise<Page>>();
  const turns = createTurns();

  function newestAfter(index: number): Piece {
    const known = newest.get(index);
    if (known !== undefined) return known;
    const piece = pieceOf(index, startOf(held.slice(held.length - (end - index))));
    if (newest.size === MOST_PAGES) newest.clear();
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
      newest.clear();
    },
    append(events: readonly string[]): void {
      end += events.length;
      held.push(...events);
      if (held.length >= 2 * MOST_HELD) held = held.slice(-MOST_HELD);
      newest.clear();
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
