/**
 * The revocation list on a follower: it arrives in full once, and then as the differences between versions.
 *
 * Documents are written to a few reused buffers of shared memory, which the garbage collector does not account for.
 * Each buffer already has the entries of an earlier version, so only the later entries are written.
 */
import { createHash, type Hash } from 'node:crypto';
import { type PublishedDocument, withHeadroom } from '../../protocol/contract/documents.ts';
import { entriesIn } from '../../protocol/contract/revision-ends.ts';
import type { Revision } from '../../protocol/records/revocation-list-delta.ts';
import type { GrownList, WholeDocument } from './messages.ts';

export interface ReceivedList {
  /** Call when the full list has arrived; null when there is no list any more. */
  begin(whole: PublishedDocument | null): void;
  /**
   * Publishes the next version, built from the previous one. `revision` is its signed part. Throws if the digest of the
   * entries differs from the signed one.
   */
  grow(grown: GrownList, revision: WholeDocument): void;
}

export interface ReceivedListOptions {
  publish(document: PublishedDocument): void;
  /** Resolves when no edge can still be reading a document that was replaced before this call. */
  edgesCaughtUp(): Promise<void>;
}

interface Version {
  readonly document: PublishedDocument;
  /** The offsets at which the first entry begins and the last one ends. */
  readonly from: number;
  readonly to: number;
  /** Null for a version that arrived in full. */
  readonly memory: Memory | null;
}

interface Memory {
  readonly bytes: Buffer;
  isFree: boolean;
  /** The entries in this memory. */
  from: number;
  to: number;
}

export function createReceivedList({ publish, edgesCaughtUp }: ReceivedListOptions): ReceivedList {
  let newest: Version | null = null;
  /**
   * The running hash of the issuer and all entries of the newest version; null until there is a digest to compare it
   * with. It begins again when another key issues the list.
   */
  let hashed: { readonly issuer: string; readonly hash: Hash } | null = null;
  let memories: Memory[] = [];

  function begin(whole: PublishedDocument | null): void {
    const entries = whole && entriesIn(whole.bytes);
    newest = whole && entries && { document: whole, ...entries, memory: null };
    hashed = null;
    memories = [];
  }

  function assertDigest(base: Version, added: Uint8Array, { bytes }: WholeDocument): void {
    const { issuer, entries_digest } = JSON.parse(Buffer.from(bytes).toString()) as Revision;
    if (hashed?.issuer !== issuer) {
      const hash = createHash('sha256').update(`${issuer}\n`).update(entriesOf(base));
      hashed = { issuer, hash };
    }
    hashed.hash.update(added);
    if (hashed.hash.copy().digest('hex') !== entries_digest) {
      throw new Error('the extended revocation list is not the signed one');
    }
  }

  function written(base: Version, { before, added, after, ...version }: GrownList): Version {
    const from = before.length;
    const held = base.to - base.from;
    const to = from + held + added.length;
    const memory = freeMemory(to + after.length);
    const { bytes } = memory;
    const known = memory.from === from ? memory.to - from : 0;
    bytes.set(before);
    bytes.set(entriesOf(base).subarray(known), from + known);
    bytes.set(added, from + held);
    bytes.set(after, to);
    Object.assign(memory, { isFree: false, from, to });
    const { etag, freshUntil } = version;
    const document = { bytes: bytes.subarray(0, to + after.length), etag, freshUntil };
    return { document, from, to, memory };
  }

  function freeMemory(needed: number): Memory {
    const fitting = memories.find(({ isFree, bytes }) => isFree && bytes.length >= needed);
    if (fitting !== undefined) return fitting;
    const bytes = Buffer.from(new SharedArrayBuffer(withHeadroom(needed)));
    const made: Memory = { bytes, isFree: true, from: 0, to: 0 };
    // The free buffers are too small.
    memories = [...memories.filter(({ isFree }) => !isFree), made];
    return made;
  }

  function release(memory: Memory): void {
    void edgesCaughtUp().then(() => {
      memory.isFree = true;
    });
  }

  return {
    begin,
    grow(grown, revision) {
      const base = newest;
      if (base === null || base.document.etag !== grown.base) {
        throw new Error('the revocation list extends a version that was not received');
      }
      assertDigest(base, grown.added, revision);
      newest = written(base, grown);
      publish(newest.document);
      if (base.memory !== null) release(base.memory);
    },
  };
}

function entriesOf({ document, from, to }: Version): Uint8Array {
  return document.bytes.subarray(from, to);
}
