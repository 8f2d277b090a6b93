/**
 * Makes the documents of the certificate revocation list, once their heads are on disk. A short list is
 * made at once; a long one by a thread beside the authority, which would otherwise stand still for as
 * long as it takes to hash megabytes. What is decided while that thread works is made together: the next
 * document is that of the newest head, and sequences between them are never shown.
 */
import { createHash } from 'node:crypto';
import { type CrlHead, type CrlIssuer, crlDocument } from './crl-document.ts';
import type { DocumentBoard } from './document-board.ts';
import type { PublishedDocument } from './documents.ts';
import type { RevocationLog } from './revocation-log.ts';

/** Lists of so many entries are pressed beside the authority. */
export const PRESS_THREAD_FROM = 1000;

/** How much of the entries belongs to a version. */
export interface CrlContent {
  /** Hex SHA-256 over the issuer's key, a line feed and the canonical entries, joined with commas. */
  readonly digest: string;
  /** Bytes of the entries. */
  readonly length: number;
}

export type CrlOrder = CrlHead & Pick<CrlContent, 'length'>;

export interface PressedDocument {
  readonly document: PublishedDocument;
  /** Gives its memory back, to be written again. */
  release(): void;
}

/** Where long lists are made. When it fails, it tells that itself, and the process ends. */
export interface PressThread {
  /** Resolves when it can press. */
  readonly ready: Promise<void>;
  /** The text that follows the entries it was given before. */
  add(entries: string): void;
  press(order: CrlOrder): Promise<PressedDocument>;
  close(): Promise<void>;
}

/** How long lists are made beside the authority. */
export interface PressingBeside {
  /** Entries from which a list is long. */
  readonly from: number;
  startThread(): PressThread;
  /** Resolves when no edge can be reading what was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
}

export interface PressOptions {
  readonly issuer: CrlIssuer;
  readonly revocations: RevocationLog;
  readonly board: DocumentBoard;
  /** Without it lists of any length are made at once. */
  readonly beside: PressingBeside | undefined;
}

export interface CrlPress {
  /** The entries decided so far, and one more. */
  content(added?: string): CrlContent;
  /** Publishes a version that is on disk; a promise when that takes a while. */
  publish(order: CrlOrder): Promise<void> | undefined;
  /** Waits until the board shows this version or a later one. */
  shown(sequence: number): Promise<void> | undefined;
  /** Resolves when a long list will not be made on this thread any more. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

export function createCrlPress(options: PressOptions): CrlPress {
  const { issuer, revocations, board, beside } = options;
  const digest = createHash('sha256').update(`${issuer.publicKey}\n`);
  let length = 0;
  let thread: PressThread | null = null;
  let threadIsReady = false;
  let shownSequence = -1;
  let waiting: { readonly sequence: number; readonly resolve: () => void }[] = [];
  let next: CrlOrder | null = null;
  let working: Promise<void> | null = null;
  let lastPressed: PressedDocument | null = null;

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

  function start({ startThread }: PressingBeside): void {
    const opened = startThread();
    opened.add(revocations.entriesText());
    void opened.ready.then(() => {
      threadIsReady = true;
    });
    thread = opened;
  }

  function pressHere(order: CrlOrder): void {
    const entries = revocations.entriesText().slice(0, order.length);
    show(order, crlDocument(issuer, order, Buffer.from(entries, 'latin1')));
  }

  async function pressBeside(by: PressThread): Promise<void> {
    while (next !== null) {
      const order = next;
      next = null;
      const pressed = await by.press(order);
      const before = lastPressed;
      lastPressed = pressed;
      show(order, pressed.document);
      if (before !== null) void beside?.edgesCaughtUp().then(before.release);
    }
    working = null;
  }

  function show({ sequence }: CrlOrder, document: PublishedDocument): void {
    board.publish('crl', document);
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
        pressHere(order);
        return undefined;
      }
      next = order;
      working ??= pressBeside(thread);
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
