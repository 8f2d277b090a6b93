/** The thread that renders long signed lists, as seen by the authority thread. */
import { isDeepStrictEqual } from 'node:util';
import type { ListEntry, ListForm, ListHead } from '../../authority/lists/list-document.ts';
import type { ListThread, RenderedList } from '../../authority/lists/list-rendering.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import {
  type KeySource,
  type SigningKeys,
  signingKeysOf,
} from '../../base/signer/authority-signer.ts';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import { endOf, startWorker } from './worker-thread.ts';

/** The keys that sign the lists; passed when the thread starts, and again when others sign. */
export interface ListThreadIdentity {
  readonly keySource: KeySource;
  readonly keys: SigningKeys;
}

/** `list` is the index of a list, in the order in which the lists were opened. */
export type ToListThread =
  | { readonly type: 'open'; readonly form: ListForm }
  | { readonly type: 'add'; readonly list: number; readonly entries: readonly ListEntry[] }
  | { readonly type: 'render'; readonly list: number; readonly head: ListHead }
  | { readonly type: 'release'; readonly buffer: number }
  /** Lists that are rendered from now on are signed with these keys. */
  | { readonly type: 'use'; readonly identity: ListThreadIdentity }
  | { readonly type: 'exit' };

export type FromListThread =
  | { readonly type: 'ready' }
  /** `buffer` is the memory of the document until it is released. */
  | {
      readonly type: 'rendered';
      readonly document: PublishedDocument;
      readonly buffer: number;
    };

/**
 * `keySource` is asked again when other keys sign; `onFailure` is called for failures after the thread became ready.
 */
export function startListThread(
  signer: RecordSigner,
  keySource: () => KeySource,
  onFailure: (cause: unknown) => void,
): ListThread {
  let identity: ListThreadIdentity = { keySource: keySource(), keys: signingKeysOf(signer) };
  const worker = startWorker('list', identity);
  let isReady = false;
  let becomeReady: () => void;
  let notStarted: (cause: unknown) => void;
  const ready = new Promise<void>((resolve, reject) => {
    becomeReady = resolve;
    notStarted = reject;
  });
  const ended = endOf(worker, (cause) => (isReady ? onFailure(cause) : notStarted(cause)));
  const orders: ((rendered: RenderedList) => void)[] = [];
  let lists = 0;
  let closing = false;

  worker.on('message', (message: FromListThread) => {
    if (message.type === 'ready') {
      isReady = true;
      return becomeReady();
    }
    const { document, buffer } = message;
    // Documents arrive in the order in which they were requested.
    orders.shift()?.({ document, release: () => post({ type: 'release', buffer }) });
  });

  function post(message: ToListThread): void {
    if (!closing) worker.postMessage(message);
  }

  function useCurrentKeys(): void {
    const keys = signingKeysOf(signer);
    if (isDeepStrictEqual(keys, identity.keys)) return;
    identity = { keySource: keySource(), keys };
    post({ type: 'use', identity });
  }

  return {
    ready,
    open(form) {
      const list = lists;
      lists += 1;
      post({ type: 'open', form });
      return {
        add: (entries) => post({ type: 'add', list, entries }),
        render(head) {
          useCurrentKeys();
          post({ type: 'render', list, head });
          return new Promise((resolve) => orders.push(resolve));
        },
      };
    },
    close() {
      post({ type: 'exit' });
      closing = true;
      return ended.expected();
    },
  };
}
