/**
 * Renders the documents of signed lists. Short lists are rendered immediately, long ones on a separate thread, because
 * hashing megabytes would block the authority. Versions decided while that thread is busy are combined: the next
 * document shows the newest version, and the sequences in between are never published.
 */
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import {
  createListContent,
  type ListContent,
  type ListEntry,
  type ListForm,
  type ListHead,
} from './list-document.ts';

/** Lists with at least this many entries are rendered on a separate thread. */
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

/** The thread that renders long lists. If it fails after it was ready, the process ends. */
export interface ListThread {
  /** Resolves when the thread is ready; rejects if it could not start. */
  readonly ready: Promise<void>;
  open(form: ListForm): ThreadList;
  close(): Promise<void>;
}

/** How the separate thread renders long lists. */
export interface ListThreading {
  /** Lists with at least this many entries are long. */
  readonly from: number;
  startThread(): ListThread;
  /** Called with the reason why a thread could not start; lists are then rendered without it. */
  notStarted(cause: unknown): void;
  /** Resolves once no edge can still be reading a document that was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
}

/** One thread for all long lists. It is started by the first one, or by the next one if it failed to start. */
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

/** Called with each version once it is rendered. */
export type ShowVersion = (document: PublishedDocument, head: ListHead) => void;

interface ListRenderingOptions {
  readonly form: ListForm;
  readonly signer: RecordSigner;
  /** If null, lists of any length are rendered immediately. */
  readonly threads: ListThreads | null;
  readonly show: ShowVersion;
}

/** A list on this thread. The entries are what a thread would take over. */
interface ListHere {
  readonly entries: ListEntry[];
  readonly content: ListContent;
}

export function createListRendering(options: ListRenderingOptions) {
  const { form, signer, threads, show } = options;
  /** Null once the list is no longer rendered on this thread. */
  let here: ListHere | null = { entries: [], content: createListContent(form) };
  let onThread: ThreadList | null = null;
  let becomingReady: Promise<void> | undefined;
  let longFrom = threads?.from ?? Infinity;
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

  async function renderOnThread(by: ThreadList): Promise<void> {
    while (next !== null) {
      const head = next;
      next = null;
      const rendered = await by.render(head);
      const before = lastRendered;
      lastRendered = rendered;
      show(rendered.document, head);
      if (before !== null) void threads?.edgesCaughtUp().then(before.release);
    }
    working = null;
  }

  return {
    /** Adds committed entries, which are part of every document rendered afterward. */
    add(entries: readonly ListEntry[]) {
      onThread?.add(entries);
      if (here === null) return;
      for (const entry of entries) here.entries.push(entry);
      here.content.add(entries);
      if (onThread === null && threads !== null && here.entries.length >= longFrom) {
        startOnThread(threads, here.entries);
      }
    },
    /** Renders this version and shows it, immediately or later, unless a newer version is shown instead. */
    render(head: ListHead) {
      if (here !== null) {
        show(here.content.document(head, signer), head);
        return;
      }
      next = head;
      if (onThread !== null) working ??= renderOnThread(onThread);
    },
    /** Resolves once the thread has taken over a long list, or could not start. */
    async ready(): Promise<void> {
      await becomingReady;
    },
    /** Resolves when nothing is being rendered. */
    async settled(): Promise<void> {
      await working;
    },
  };
}
