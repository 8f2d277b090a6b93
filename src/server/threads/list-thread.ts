/** The thread that renders long signed lists, as seen by the authority thread. */
import { isDeepStrictEqual } from 'node:util';
import type { ListEntry, ListForm, ListHead } from '../../authority/lists/list-document.ts';
import type { ListThread } from '../../authority/lists/list-rendering.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import {
  type KeySource,
  type SigningKeys,
  signingKeysOf,
} from '../../base/signer/authority-signer.ts';
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import { createPeer, endOf, startWorker } from './rpc.ts';

/** The keys that sign the lists; passed when the thread starts, and again when others sign. */
export interface ListThreadIdentity {
  readonly keySource: KeySource;
  readonly keys: SigningKeys;
}

/** What is asked of the thread, in this order. `list` is the index of a list, in the order in which they were opened. */
export type ListProcedures = {
  /** Returns once the thread has its keys. */
  ready(): void;
  open(form: ListForm): void;
  add(list: number, entries: readonly ListEntry[]): void;
  /** `buffer` is the memory of the document until it is released. */
  render(list: number, head: ListHead): Promise<{ document: PublishedDocument; buffer: number }>;
  release(buffer: number): void;
  /** Lists that are rendered from now on are signed with these keys. */
  use(identity: ListThreadIdentity): void;
  exit(): void;
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
  const thread = createPeer<ListProcedures>(worker, {});
  let isReady = false;
  let lists = 0;
  let closing = false;
  let notStarted: (cause: unknown) => void;
  const ready = new Promise<void>((resolve, reject) => {
    notStarted = reject;
    void thread.call('ready').then(() => {
      isReady = true;
      resolve();
    });
  });
  const ended = endOf(worker, (cause) => (isReady ? onFailure(cause) : notStarted(cause)));

  const notify: typeof thread.notify = (name, ...given) => {
    if (!closing) thread.notify(name, ...given);
  };

  function useCurrentKeys(): void {
    const keys = signingKeysOf(signer);
    if (isDeepStrictEqual(keys, identity.keys)) return;
    identity = { keySource: keySource(), keys };
    notify('use', identity);
  }

  return {
    ready,
    open(form) {
      const list = lists;
      lists += 1;
      notify('open', form);
      return {
        add: (entries) => notify('add', list, entries),
        render(head) {
          useCurrentKeys();
          if (closing) return NEVER;
          return thread.call('render', list, head).then(
            ({ document, buffer }) => ({ document, release: () => notify('release', buffer) }),
            // The failure ends the thread, and is reported then.
            () => NEVER,
          );
        },
      };
    },
    close() {
      notify('exit');
      closing = true;
      return ended.expected();
    },
  };
}

const NEVER = new Promise<never>(() => undefined);
