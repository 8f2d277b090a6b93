/** What a follower has of the revocation list, so that it is sent no more than what it lacks. */
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import { entriesIn } from '../../protocol/contract/revision-ends.ts';
import type { GrownList } from './messages.ts';

/** A version as it was sent. */
export interface SentList {
  readonly etag: string;
  /** Bytes of its entries. */
  readonly length: number;
}

/** Null for what is not a list. */
export function sentListOf({ bytes, etag }: PublishedDocument): SentList | null {
  const entries = entriesIn(bytes);
  return entries && { etag, length: entries.to - entries.from };
}

/**
 * Entries are only ever appended. Null where the newer version is shorter all the same; whether it begins as the older
 * one does is seen by its digest, at the follower.
 */
export function grownSince(sent: SentList, newer: PublishedDocument): GrownList | null {
  const { bytes, etag, freshUntil } = newer;
  const entries = entriesIn(bytes);
  if (entries === null) return null;
  const { from, to } = entries;
  if (to - from < sent.length) return null;
  return {
    base: sent.etag,
    before: copied(bytes, 0, from),
    added: copied(bytes, from + sent.length, to),
    after: copied(bytes, to, bytes.length),
    etag,
    freshUntil,
  };
}

/** Shared memory cannot be sent, and may be overwritten. */
function copied(bytes: Uint8Array, from: number, to: number): Uint8Array {
  return new Uint8Array(bytes.subarray(from, to));
}
