/** The thread that makes long revocation lists, as the authority sees it. */
import { Worker } from 'node:worker_threads';
import type { CrlOrder, CrlThread, RenderedCrl } from '../authority/publication/crl-publisher.ts';
import type { PublishedDocument } from '../contract/documents.ts';
import { threadEntry } from './thread-entry.ts';

/** Whose lists they are; the seed is handed over once, when the thread starts. */
export interface CrlThreadIdentity {
  readonly seed: Uint8Array;
  readonly publicKey: string;
  readonly keyId: string;
}

export type ToCrlThread =
  | { readonly type: 'add'; readonly entries: string }
  | { readonly type: 'render'; readonly order: CrlOrder }
  | { readonly type: 'release'; readonly buffer: number }
  | { readonly type: 'exit' };

export type FromCrlThread =
  | { readonly type: 'ready' }
  /** `buffer` names the memory that the document lies in, until it is released. */
  | {
      readonly type: 'rendered';
      readonly document: PublishedDocument;
      readonly buffer: number;
    };

const CRL_WORKER = threadEntry('crl');

export function startCrlThread(
  identity: CrlThreadIdentity,
  onFatal: (cause: unknown) => void,
): CrlThread {
  const worker = new Worker(CRL_WORKER, { workerData: identity });
  const orders: ((rendered: RenderedCrl) => void)[] = [];
  let becomeReady: () => void;
  let closing = false;
  const ready = new Promise<void>((resolve) => {
    becomeReady = resolve;
  });

  worker.on('message', (message: FromCrlThread) => {
    if (message.type === 'ready') return becomeReady();
    const { document, buffer } = message;
    // Documents come in the order they were asked for.
    orders.shift()?.({ document, release: () => post({ type: 'release', buffer }) });
  });
  worker.on('error', onFatal);
  worker.on('exit', () => {
    if (!closing) onFatal(new Error('The thread of the revocation list has ended'));
  });

  function post(message: ToCrlThread): void {
    if (!closing) worker.postMessage(message);
  }

  return {
    ready,
    add: (entries) => post({ type: 'add', entries }),
    render(order) {
      post({ type: 'render', order });
      return new Promise((resolve) => orders.push(resolve));
    },
    close() {
      post({ type: 'exit' });
      closing = true;
      return new Promise((resolve) => worker.once('exit', () => resolve()));
    },
  };
}
