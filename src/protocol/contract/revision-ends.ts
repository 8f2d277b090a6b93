/**
 * The end offset of each recent version of the revocation list [core-5-5-1]. Entries are only appended, so the
 * difference between two versions is the text between their ends. The authority writes to this shared memory, and every
 * edge reads it.
 */

/** Differences are served for this many previous versions. */
export const KEPT_REVISIONS = 10_000;

/** More slots than versions served, because an edge may read with an older version than the newest. */
const SLOTS = 16_384;

/** The index of the newest sequence number, after the slots. */
const NEWEST = SLOTS;

/** The number of bytes from the first entry to the end of the last, by sequence number. */
export type RevisionEnds = Int32Array;

export function createRevisionEnds(): RevisionEnds {
  return new Int32Array(new SharedArrayBuffer((SLOTS + 1) * Int32Array.BYTES_PER_ELEMENT));
}

/** Must be called with increasing sequence numbers. */
export function noteEnd(ends: RevisionEnds, sequence: number, end: number): void {
  Atomics.store(ends, sequence % SLOTS, end);
  Atomics.store(ends, NEWEST, sequence);
}

export function newestSequence(ends: RevisionEnds): number {
  return Atomics.load(ends, NEWEST);
}

/** Every version noted after this one, each followed by its end, for transfer to another process. */
export function endsAfter(ends: RevisionEnds, sequence: number): number[] {
  const newest = newestSequence(ends);
  const noted: number[] = [];
  for (let next = Math.max(sequence + 1, newest - KEPT_REVISIONS); next <= newest; next += 1) {
    noted.push(next, endOf(ends, next));
  }
  return noted;
}

/** Applies the result of `endsAfter` from another process. The newest sequence number never decreases. */
export function takeEnds(ends: RevisionEnds, noted: readonly number[]): void {
  const newest = newestSequence(ends);
  for (let at = 0; at < noted.length; at += 2) {
    noteEnd(ends, noted[at] as number, noted[at + 1] as number);
  }
  if (newestSequence(ends) < newest) Atomics.store(ends, NEWEST, newest);
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

/** The offsets at which the first entry of a published list begins and the last one ends; null for another document. */
export function entriesIn(
  bytes: Uint8Array,
): { readonly from: number; readonly to: number } | null {
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const before = list.indexOf(BEFORE_ENTRIES);
  const to = list.lastIndexOf(AFTER_ENTRIES);
  return before < 0 || to < 0 ? null : { from: before + BEFORE_ENTRIES.length, to };
}
