/** The version of the revocation list that a follower has, so that only the difference is sent. */
import type { PublishedDocument } from '../../protocol/contract/documents.ts';
import { entriesIn } from '../../protocol/contract/revision-ends.ts';
import type { GrownList } from './messages.ts';

/** A version that was sent. */
export interface SentList {
  readonly etag: string;
  /** The length of its entries in bytes. */
  readonly length: number;
}

/** Null if the document is not a list. */
export function sentListOf({ bytes, etag }: PublishedDocument): SentList | null {
  const entries = entriesIn(bytes);
  return entries && { etag, length: entries.to - entries.from };
}

/**
 * The difference between two versions, given that entries are only appended. Null if the newer version is shorter
 * anyway; the follower checks by the digest whether it really begins like the older one.
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

/** A copy, because shared memory cannot be sent and may be overwritten. */
function copied(bytes: Uint8Array, from: number, to: number): Uint8Array {
  return new Uint8Array(bytes.subarray(from, to));
}
