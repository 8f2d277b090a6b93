/** The messages between instances. They arrive in order, and each is applied completely before the next. */
import type { PublishedName } from '../../protocol/contract/documents.ts';
import type { Answers, Batch } from '../threads/messages.ts';

/** Instances of different versions do not link, because the messages may differ between versions. */
export interface Hello {
  readonly type: 'hello';
  readonly program: string;
  /** The name of the sender. */
  readonly name: string;
  /** The id of its start, as shown by `/readyz`. */
  readonly instance: string;
}

export type FromFollower =
  | Hello
  /** The same lists as between the threads of one process. */
  | ({ readonly type: 'requests' } & Pick<Batch, 'heartbeats' | 'requests'>)
  /**
   * Checks that the other instance is still the writer; `at` is the follower's time, which is echoed. `lag` is how many
   * revisions its standby state is behind; null while it has none. `nextKey` is the staged authority key if the
   * follower holds it; null otherwise.
   */
  | {
      readonly type: 'ask';
      readonly at: number;
      readonly lag: number | null;
      readonly nextKey: string | null;
    }
  /** Confirms that no further requests will be sent. */
  | { readonly type: 'halted' };

interface SentVersion {
  readonly etag: string;
  /** Milliseconds since the epoch. */
  readonly freshUntil: number;
}

export interface WholeDocument extends SentVersion {
  readonly bytes: Uint8Array;
}

/**
 * A version of the revocation list, as the difference from the version sent before on the same connection. The digest
 * of all its entries is in the `crl_revision` of the same news.
 */
export interface GrownList extends SentVersion {
  /** The `etag` of the previously sent version. */
  readonly base: string;
  /** The text before the first entry. */
  readonly before: Uint8Array;
  /** The entries added since the previous version, with the comma in front. */
  readonly added: Uint8Array;
  /** The text after the last entry. */
  readonly after: Uint8Array;
}

export interface SentDocument {
  readonly name: PublishedName;
  /** The newest version that was made since the previous message; null if there is none. */
  readonly document: WholeDocument | GrownList | null;
  /** Whether the newest version is outdated, and will be rebuilt on request. */
  readonly isOutdated: boolean;
}

/** The changes to the public documents since the previous message. */
export interface News {
  readonly documents: readonly SentDocument[];
  /** For each version of the revocation list, its sequence and its end offset. */
  readonly ends: readonly number[];
}

export type FromWriter =
  | { readonly type: 'welcome'; readonly epoch: number }
  /** News are applied before the answers that depend on them. */
  | { readonly type: 'answers'; readonly news: News | null; readonly answers: Answers | null }
  /** Everything that was acknowledged before `at` has been sent. */
  | { readonly type: 'complete'; readonly at: number }
  /** Another instance is taking over: send no more requests. */
  | { readonly type: 'halt' };
