/**
 * The end offset of each recent version of the revocation list [core-5-5-1]. Entries are only appended, so the
 * difference between two versions is the text between their ends. The authority writes to this shared memory, and every
 * edge reads it.
 */

/** Differences are served for this many previous versions. */
export const KEPT_REVISIONS = 10_000;

/** More slots than versions served, because an edge may read with an older version than the newest. */
const SLOTS = 16_384;

/** The number of bytes from the first entry to the end of the last, by sequence number. */
export type RevisionEnds = Int32Array;

export function createRevisionEnds(): RevisionEnds {
  return new Int32Array(new SharedArrayBuffer(SLOTS * Int32Array.BYTES_PER_ELEMENT));
}

/** Must be called with increasing sequence numbers. */
export function noteEnd(ends: RevisionEnds, sequence: number, end: number): void {
  Atomics.store(ends, sequence % SLOTS, end);
}

/** Valid only for a published version and the `KEPT_REVISIONS` versions before it. */
export function endOf(ends: RevisionEnds, sequence: number): number {
  return Atomics.load(ends, sequence % SLOTS);
}

/** The text before the entries in canonical JSON. */
const BEFORE_ENTRIES = '"revoked_certificates":[';
const AFTER_ENTRIES = '],"sequence":';

/** The start of each entry. It cannot occur inside a value, where quotes are escaped. */
const ENTRY = '{"certificate_id":"';

/** The last certificate in a published list; null for an empty list or another document. */
export function lastRevokedIn(bytes: Uint8Array): string | null {
  const entries = entriesIn(bytes);
  if (entries === null || entries.from === entries.to) return null;
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, entries.to);
  const from = list.lastIndexOf(ENTRY) + ENTRY.length;
  return list.toString('latin1', from, list.indexOf('"', from));
}

/** The sequence of a published list; 0 for another document. */
export function sequenceIn(bytes: Uint8Array): number {
  const entries = entriesIn(bytes);
  if (entries === null) return 0;
  const from = bytes.byteOffset + entries.to + AFTER_ENTRIES.length;
  const after = Buffer.from(
    bytes.buffer,
    from,
    Math.min(DIGITS, bytes.byteOffset + bytes.byteLength - from),
  );
  return Number.parseInt(after.toString('latin1'), 10) || 0;
}

/** No sequence has more. */
const DIGITS = 16;

/** The offsets at which the first entry of a published list begins and the last one ends; null for another document. */
export function entriesIn(
  bytes: Uint8Array,
): { readonly from: number; readonly to: number } | null {
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const before = list.indexOf(BEFORE_ENTRIES);
  const to = list.lastIndexOf(AFTER_ENTRIES);
  return before < 0 || to < 0 ? null : { from: before + BEFORE_ENTRIES.length, to };
}
