/** What instances send each other. Messages arrive in order, and each is applied whole before the next. */
import type { PublishedName } from '../../protocol/contract/documents.ts';
import type { Answers, Batch } from '../threads/messages.ts';

/** Instances of different programs do not talk: what they send is known to one version only. */
export interface Hello {
  readonly type: 'hello';
  readonly program: string;
  /** How the other calls itself. */
  readonly name: string;
  /** The id of its start, which `/readyz` has. */
  readonly instance: string;
}

export type FromFollower =
  | Hello
  /** Lists as those that the threads of one process send. */
  | ({ readonly type: 'requests' } & Pick<Batch, 'heartbeats' | 'requests'>)
  /**
   * Asks whether the other still writes; `at` is the follower's own time, which it gets back. `lag` is how many
   * revisions the state is behind that it keeps ready; null while it keeps none.
   */
  | { readonly type: 'ask'; readonly at: number; readonly lag: number | null }
  /** No further request is sent. */
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
 * A version of the revocation list, by what it has more than the one that was sent before on the same connection. The
 * digest of all its entries is in the `crl_revision` of the same news.
 */
export interface GrownList extends SentVersion {
  /** The `etag` of the version that was sent before. */
  readonly base: string;
  /** Up to the first entry. */
  readonly before: Uint8Array;
  /** What follows the entries of the version before, with the comma between them. */
  readonly added: Uint8Array;
  /** From the end of the last entry on. */
  readonly after: Uint8Array;
}

export interface SentDocument {
  readonly name: PublishedName;
  /** Null when the document is outdated, and rebuilt on request. */
  readonly document: WholeDocument | GrownList | null;
}

/** What has changed in the public documents since the message before. */
export interface News {
  readonly documents: readonly SentDocument[];
  /** For each version of the revocation list: its sequence, and its end. */
  readonly ends: readonly number[];
}

export type FromWriter =
  | { readonly type: 'welcome'; readonly epoch: number }
  /** News come before the answers that rest on them. */
  | { readonly type: 'answers'; readonly news: News | null; readonly answers: Answers | null }
  /** Everything that was acknowledged before `at` has been sent. */
  | { readonly type: 'complete'; readonly at: number }
  /** Another instance takes over: send nothing more. */
  | { readonly type: 'halt' };
