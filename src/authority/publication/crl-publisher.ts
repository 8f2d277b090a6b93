/**
 * Makes the documents of the certificate revocation list, once their heads are on disk. A short list is
 * made at once; a long one by a thread beside the authority, which would otherwise stand still for as
 * long as it takes to hash megabytes. What is decided while that thread works is made together: the next
 * document is that of the newest head, and sequences between them are never shown.
 */
import { createHash } from 'node:crypto';
import type { PublishedDocument } from '../../contract/documents.ts';
import type { DocumentPublisher } from '../../contract/publications.ts';
import { type CrlHead, type CrlIssuer, crlDocument } from './crl-document.ts';
import type { RevocationLog } from './revocation-log.ts';

/** Lists of so many entries are rendered beside the authority. */
export const CRL_THREAD_FROM = 1000;

/** How much of the entries belongs to a version. */
export interface CrlContent {
  /** Hex SHA-256 over the issuer's key, a line feed and the canonical entries, joined with commas. */
  readonly digest: string;
  /** Bytes of the entries. */
  readonly length: number;
}

export type CrlOrder = CrlHead & Pick<CrlContent, 'length'>;

export interface RenderedCrl {
  readonly document: PublishedDocument;
  /** Gives its memory back, to be written again. */
  release(): void;
}

/** Where long lists are made. When it fails, it tells that itself, and the process ends. */
export interface CrlThread {
  /** Resolves when it can render. */
  readonly ready: Promise<void>;
  /** The text that follows the entries it was given before. */
  add(entries: string): void;
  render(order: CrlOrder): Promise<RenderedCrl>;
  close(): Promise<void>;
}

/** How long lists are made beside the authority. */
export interface CrlThreading {
  /** Entries from which a list is long. */
  readonly from: number;
  startThread(): CrlThread;
  /** Resolves when no edge can be reading what was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
}

export interface CrlPublisherOptions {
  readonly issuer: CrlIssuer;
  readonly revocations: RevocationLog;
  readonly publisher: DocumentPublisher;
  /** Without it lists of any length are made at once. */
  readonly beside: CrlThreading | undefined;
}

export interface CrlPublisher {
  /** The entries decided so far, and one more. */
  content(added?: string): CrlContent;
  /** Publishes a version that is on disk; a promise when that takes a while. */
  publish(order: CrlOrder): Promise<void> | undefined;
  /** Waits until the publisher shows this version or a later one. */
  shown(sequence: number): Promise<void> | undefined;
  /** Resolves when a long list will not be made on this thread any more. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

export function createCrlPublisher(options: CrlPublisherOptions): CrlPublisher {
  const { issuer, revocations, publisher, beside } = options;
  const digest = createHash('sha256').update(`${issuer.publicKey}\n`);
  let length = 0;
  let thread: CrlThread | null = null;
  let threadIsReady = false;
  let shownSequence = -1;
  let waiting: { readonly sequence: number; readonly resolve: () => void }[] = [];
  let next: CrlOrder | null = null;
  let working: Promise<void> | null = null;
  let lastRendered: RenderedCrl | null = null;

  take(revocations.entriesText());
  revocations.onAdded((entry) => take(follow(entry)));

  function follow(entry: string): string {
    return length === 0 ? entry : `,${entry}`;
  }

  function take(text: string): void {
    digest.update(text, 'latin1');
    length += text.length;
    if (thread !== null) thread.add(text);
    else if (beside !== undefined && revocations.count() >= beside.from) start(beside);
  }

  function start({ startThread }: CrlThreading): void {
    const opened = startThread();
    opened.add(revocations.entriesText());
    void opened.ready.then(() => {
      threadIsReady = true;
    });
    thread = opened;
  }

  function renderHere(order: CrlOrder): void {
    const entries = revocations.entriesText().slice(0, order.length);
    show(order, crlDocument(issuer, order, Buffer.from(entries, 'latin1')));
  }

  async function renderOnThread(by: CrlThread): Promise<void> {
    while (next !== null) {
      const order = next;
      next = null;
      const rendered = await by.render(order);
      const before = lastRendered;
      lastRendered = rendered;
      show(order, rendered.document);
      if (before !== null) void beside?.edgesCaughtUp().then(before.release);
    }
    working = null;
  }

  function show({ sequence }: CrlOrder, document: PublishedDocument): void {
    publisher.publish('crl', document);
    shownSequence = sequence;
    for (const { resolve } of waiting.filter((one) => one.sequence <= sequence)) resolve();
    waiting = waiting.filter((one) => one.sequence > sequence);
  }

  function shown(sequence: number): Promise<void> | undefined {
    if (sequence <= shownSequence) return undefined;
    return new Promise((resolve) => waiting.push({ sequence, resolve }));
  }

  return {
    content(added) {
      if (added === undefined) return { digest: digest.copy().digest('hex'), length };
      const text = follow(added);
      return {
        digest: digest.copy().update(text, 'latin1').digest('hex'),
        length: length + text.length,
      };
    },
    publish(order) {
      if (thread === null || !threadIsReady) {
        renderHere(order);
        return undefined;
      }
      next = order;
      working ??= renderOnThread(thread);
      return shown(order.sequence);
    },
    shown,
    async ready() {
      await thread?.ready;
    },
    async close() {
      await working;
      await thread?.close();
    },
  };
}
