/**
 * Renders the documents of a signed list. A short list is rendered at once, a long one by a separate
 * thread, because hashing megabytes would block the authority. Versions that are decided while that thread
 * works are combined: the next document is that of the newest version, and sequences in between are never
 * published.
 */
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import {
  createListContent,
  type ListContent,
  type ListEntry,
  type ListForm,
  type ListHead,
  type ListSigner,
} from './list-document.ts';

/** Lists with at least this many entries are rendered on the separate thread. */
export const LIST_THREAD_FROM = 1000;

export interface RenderedList {
  readonly document: PublishedDocument;
  /** Returns its memory for reuse. */
  release(): void;
}

/** One long list on the thread. */
export interface ThreadList {
  add(entries: readonly ListEntry[]): void;
  /** Renders the list with all entries added so far. */
  render(head: ListHead): Promise<RenderedList>;
}

/** The thread that renders long lists. A failure of one that was ready ends the process. */
export interface ListThread {
  /** Resolves when the thread is ready; rejects if it could not start. */
  readonly ready: Promise<void>;
  open(form: ListForm): ThreadList;
  close(): Promise<void>;
}

/** How the separate thread renders long lists. */
export interface ListThreading {
  /** The number of entries from which a list is long. */
  readonly from: number;
  startThread(): ListThread;
  /** Called with the reason why a thread could not start: lists are then rendered without it. */
  notStarted(cause: unknown): void;
  /** Resolves when no edge can still be reading a document that was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
}

/** One thread for all long lists, started by the first of them; after one that did not start, by the next. */
export interface ListThreads extends Pick<ListThreading, 'from' | 'edgesCaughtUp'> {
  thread(): ListThread;
  close(): Promise<void>;
}

export function createListThreads(threading: ListThreading): ListThreads {
  let started: ListThread | null = null;

  function start(): ListThread {
    const thread = threading.startThread();
    thread.ready.catch((cause) => {
      started = null;
      threading.notStarted(cause);
    });
    return thread;
  }

  return {
    from: threading.from,
    edgesCaughtUp: threading.edgesCaughtUp,
    thread() {
      started ??= start();
      return started;
    },
    async close() {
      await started?.close();
    },
  };
}

export interface ListRenderer {
  /** Adds committed entries; every document rendered after this has them. */
  add(entries: readonly ListEntry[]): void;
  /** Publishes the document of a version; a promise when that takes a while. */
  render(head: ListHead): Promise<void> | undefined;
  /** Waits until this version or a later one is published. */
  shown(sequence: number): Promise<void> | undefined;
  /** Resolves when long lists are no longer rendered on this thread, or their thread could not start. */
  ready(): Promise<void>;
  /** Resolves when nothing is being rendered. */
  settled(): Promise<void>;
}

export interface ListRendererOptions {
  readonly form: ListForm;
  readonly signer: ListSigner;
  /** Without a thread, lists of any length are rendered at once. */
  readonly threads: ListThreads | null;
  show(document: PublishedDocument, head: ListHead): void;
}

interface ListHere {
  readonly entries: ListEntry[];
  /** Created for the first document. */
  content: ListContent | null;
}

export function createListRenderer(options: ListRendererOptions): ListRenderer {
  const { form, signer, threads, show } = options;
  /** All entries, as long as the list may be rendered on this thread. */
  let here: ListHere | null = { entries: [], content: null };
  let onThread: ThreadList | null = null;
  let becomingReady: Promise<void> | undefined;
  let longFrom = threads?.from ?? Infinity;
  let shownSequence = -1;
  let waiting: { readonly sequence: number; readonly resolve: () => void }[] = [];
  let next: ListHead | null = null;
  let working: Promise<void> | null = null;
  let lastRendered: RenderedList | null = null;

  function startOnThread({ thread }: ListThreads, entries: readonly ListEntry[]): void {
    const started = thread();
    onThread = started.open(form);
    onThread.add(entries);
    becomingReady = started.ready.then(
      () => {
        here = null;
      },
      () => {
        onThread = null;
        longFrom = 2 * Math.max(1, entries.length);
      },
    );
  }

  function add(entries: readonly ListEntry[]): void {
    onThread?.add(entries);
    if (here === null) return;
    for (const entry of entries) here.entries.push(entry);
    here.content?.add(entries);
    if (onThread === null && threads !== null && here.entries.length >= longFrom) {
      startOnThread(threads, here.entries);
    }
  }

  async function renderOnThread(by: ThreadList): Promise<void> {
    while (next !== null) {
      const head = next;
      next = null;
      const rendered = await by.render(head);
      const before = lastRendered;
      lastRendered = rendered;
      showVersion(head, rendered.document);
      if (before !== null) void threads?.edgesCaughtUp().then(before.release);
    }
    working = null;
  }

  function showVersion(head: ListHead, document: PublishedDocument): void {
    const { sequence } = head;
    show(document, head);
    shownSequence = sequence;
    for (const { resolve } of waiting.filter((one) => one.sequence <= sequence)) resolve();
    waiting = waiting.filter((one) => one.sequence > sequence);
  }

  function shown(sequence: number): Promise<void> | undefined {
    if (sequence <= shownSequence) return undefined;
    return new Promise((resolve) => waiting.push({ sequence, resolve }));
  }

  return {
    add,
    render(head) {
      if (here !== null) {
        here.content ??= contentOf(form, here.entries);
        showVersion(head, here.content.document(head, signer));
        return undefined;
      }
      next = head;
      if (onThread !== null) working ??= renderOnThread(onThread);
      return shown(head.sequence);
    },
    shown,
    async ready() {
      await becomingReady;
    },
    async settled() {
      await working;
    },
  };
}

function contentOf(form: ListForm, entries: readonly ListEntry[]): ListContent {
  const content = createListContent(form);
  content.add(entries);
  return content;
}
