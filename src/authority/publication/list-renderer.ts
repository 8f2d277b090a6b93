/**
 * Makes the documents of a signed list. A short list is made at once; a long one by a thread beside the
 * authority, which would otherwise stand still for as long as it takes to hash megabytes. Versions that are
 * decided while that thread works are made together: the next document is that of the newest version, and
 * sequences between them are never shown.
 */
import type { PublishedDocument } from '../../contract/documents.ts';
import {
  createListContent,
  type ListContent,
  type ListEntry,
  type ListForm,
  type ListHead,
  type ListSigner,
} from './list-document.ts';

/** Lists of so many entries are rendered beside the authority. */
export const LIST_THREAD_FROM = 1000;

export interface RenderedList {
  readonly document: PublishedDocument;
  /** Gives its memory back, to be written again. */
  release(): void;
}

/** One long list, as the thread holds it. */
export interface ThreadList {
  add(entries: readonly ListEntry[]): void;
  /** The list with all entries that were added before. */
  render(head: ListHead): Promise<RenderedList>;
}

/** Where long lists are made. When it fails, it reports that itself, and the process ends. */
export interface ListThread {
  /** Resolves when it can render. */
  readonly ready: Promise<void>;
  open(form: ListForm): ThreadList;
  close(): Promise<void>;
}

/** How long lists are made beside the authority. */
export interface ListThreading {
  /** Entries from which a list is long. */
  readonly from: number;
  startThread(): ListThread;
  /** Resolves when no edge can be reading what was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
}

/** One thread for all long lists, started by the first of them. */
export interface ListThreads extends Pick<ListThreading, 'from' | 'edgesCaughtUp'> {
  thread(): ListThread;
  close(): Promise<void>;
}

export function createListThreads(threading: ListThreading): ListThreads {
  let started: ListThread | null = null;
  return {
    from: threading.from,
    edgesCaughtUp: threading.edgesCaughtUp,
    thread() {
      started ??= threading.startThread();
      return started;
    },
    async close() {
      await started?.close();
    },
  };
}

export interface ListRenderer {
  /** Entries that are on disk; every document rendered after this has them. */
  add(entries: readonly ListEntry[]): void;
  /** Shows the document of a version; a promise when that takes a while. */
  render(head: ListHead): Promise<void> | undefined;
  /** Waits until this version or a later one is shown. */
  shown(sequence: number): Promise<void> | undefined;
  /** Resolves when a long list will not be made on this thread any more. */
  ready(): Promise<void>;
  /** Resolves when nothing is being rendered. */
  settled(): Promise<void>;
}

export interface ListRendererOptions {
  readonly form: ListForm;
  readonly signer: ListSigner;
  /** Without them lists of any length are made at once. */
  readonly threads: ListThreads | null;
  show(document: PublishedDocument): void;
}

interface ListHere {
  readonly entries: ListEntry[];
  /** Made for the first document. */
  content: ListContent | null;
}

export function createListRenderer(options: ListRendererOptions): ListRenderer {
  const { form, signer, threads, show } = options;
  /** All entries, for as long as the list may be made on this thread. */
  let here: ListHere | null = { entries: [], content: null };
  let beside: ThreadList | null = null;
  let becomingReady: Promise<void> | undefined;
  let shownSequence = -1;
  let waiting: { readonly sequence: number; readonly resolve: () => void }[] = [];
  let next: ListHead | null = null;
  let working: Promise<void> | null = null;
  let lastRendered: RenderedList | null = null;

  function startBeside({ thread }: ListThreads, entries: readonly ListEntry[]): void {
    const started = thread();
    beside = started.open(form);
    beside.add(entries);
    becomingReady = started.ready.then(() => {
      here = null;
    });
  }

  function add(entries: readonly ListEntry[]): void {
    beside?.add(entries);
    if (here === null) return;
    for (const entry of entries) here.entries.push(entry);
    here.content?.add(entries);
    if (beside === null && threads !== null && here.entries.length >= threads.from) {
      startBeside(threads, here.entries);
    }
  }

  async function renderBeside(by: ThreadList): Promise<void> {
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

  function showVersion({ sequence }: ListHead, document: PublishedDocument): void {
    show(document);
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
      if (beside !== null) working ??= renderBeside(beside);
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
