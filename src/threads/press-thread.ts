/** The thread that makes long revocation lists, as the authority sees it. */
import { Worker } from 'node:worker_threads';
import type { CrlOrder, PressedDocument, PressThread } from '../authority/crl-press.ts';
import type { PublishedDocument } from '../authority/documents.ts';
import { threadEntry } from './thread-entry.ts';

/** Whose lists they are; the seed is handed over once, when the thread starts. */
export interface PressIdentity {
  readonly seed: Uint8Array;
  readonly publicKey: string;
  readonly keyId: string;
}

export type ToPress =
  | { readonly type: 'add'; readonly entries: string }
  | { readonly type: 'press'; readonly order: CrlOrder }
  | { readonly type: 'release'; readonly room: number }
  | { readonly type: 'exit' };

export type FromPress =
  | { readonly type: 'ready' }
  /** `room` names the memory that the document lies in, until it is released. */
  | {
      readonly type: 'pressed';
      readonly document: PublishedDocument;
      readonly room: number;
    };

const PRESS_WORKER = threadEntry('press');

export function startPressThread(
  identity: PressIdentity,
  onFatal: (cause: unknown) => void,
): PressThread {
  const worker = new Worker(PRESS_WORKER, { workerData: identity });
  const orders: ((pressed: PressedDocument) => void)[] = [];
  let becomeReady: () => void;
  let closing = false;
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve;
  });

  worker.on('message', (message: FromPress) => {
    if (message.type === 'ready') return becomeReady();
    const { document, room } = message;
    // Documents come in the order they were asked for.
    orders.shift()?.({ document, release: () => post({ type: 'release', room }) });
  });
  worker.on('error', onFatal);
  worker.on('exit', () => {
    if (!closing) onFatal(new Error('The thread of the revocation list has ended'));
  });

  function post(message: ToPress): void {
    if (!closing) worker.postMessage(message);
  }

  return {
    ready,
    add: (entries) => post({ type: 'add', entries }),
    press(order) {
      post({ type: 'press', order });
      return new Promise((resolve) => orders.push(resolve));
    },
    close() {
      post({ type: 'exit' });
      closing = true;
      return new Promise((resolve) => worker.once('exit', () => resolve()));
    },
  };
}
