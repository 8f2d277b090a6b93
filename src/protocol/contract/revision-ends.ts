/**
 * Where each recent version of the revocation list ends [core-5-5-1]: entries are only ever appended, so what a version
 * added to an earlier one is the text between their ends. The authority writes to this shared memory, and
 * every edge reads it.
 */

/** Differences are served from this many versions back. */
export const KEPT_REVISIONS = 10_000;

/** More than are served: an edge reads with the version that it holds, which may be an earlier one. */
const SLOTS = 16_384;

/** The place of the newest sequence number, behind the ends. */
const NEWEST = SLOTS;

/** Bytes from the first entry to the end of the last, by sequence number. */
export type RevisionEnds = Int32Array;

export function createRevisionEnds(): RevisionEnds {
  return new Int32Array(new SharedArrayBuffer((SLOTS + 1) * Int32Array.BYTES_PER_ELEMENT));
}

/** Sequence numbers rise. */
export function noteEnd(ends: RevisionEnds, sequence: number, end: number): void {
  Atomics.store(ends, sequence % SLOTS, end);
  Atomics.store(ends, NEWEST, sequence);
}

export function newestSequence(ends: RevisionEnds): number {
  return Atomics.load(ends, NEWEST);
}

/** Every version that was noted after this one, each followed by its end, for another process to take over. */
export function endsAfter(ends: RevisionEnds, sequence: number): number[] {
  const newest = newestSequence(ends);
  const noted: number[] = [];
  for (let next = Math.max(sequence + 1, newest - KEPT_REVISIONS); next <= newest; next += 1) {
    noted.push(next, endOf(ends, next));
  }
  return noted;
}

/** What `endsAfter` has returned, of another process. The newest version that was ever taken stays known as such. */
export function takeEnds(ends: RevisionEnds, noted: readonly number[]): void {
  const newest = newestSequence(ends);
  for (let at = 0; at < noted.length; at += 2) {
    noteEnd(ends, noted[at] as number, noted[at + 1] as number);
  }
  if (newestSequence(ends) < newest) Atomics.store(ends, NEWEST, newest);
}

/** Only for a version among the `KEPT_REVISIONS` before one that is published, or that one. */
export function endOf(ends: RevisionEnds, sequence: number): number {
  return Atomics.load(ends, sequence % SLOTS);
}

/** The texts around the entries in canonical JSON. */
const BEFORE_ENTRIES = '"revoked_certificates":[';
const AFTER_ENTRIES = '],"sequence":';

/** How each entry begins; the quotes of a value in it are escaped. */
const ENTRY = '{"certificate_id":"';

/** The certificate that a published list names last; null for an empty list, and for another document. */
export function lastRevokedIn(bytes: Uint8Array): string | null {
  const entries = entriesIn(bytes);
  if (entries === null || entries.from === entries.to) return null;
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, entries.to);
  const from = list.lastIndexOf(ENTRY) + ENTRY.length;
  return list.toString('latin1', from, list.indexOf('"', from));
}

/** Where a published list has its first entry, and where its last one ends; null for another document. */
export function entriesIn(
  bytes: Uint8Array,
): { readonly from: number; readonly to: number } | null {
  const list = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const before = list.indexOf(BEFORE_ENTRIES);
  const to = list.lastIndexOf(AFTER_ENTRIES);
  return before < 0 || to < 0 ? null : { from: before + BEFORE_ENTRIES.length, to };
}
