/**
 * Where each recent version of the revocation list ends [core-5-5-1]: entries are only ever appended, so what a version
 * added to an earlier one is the text between their ends. The authority writes to this shared memory, and
 * every edge reads it.
 */

/** Differences are served from this many versions back. */
export const KEPT_REVISIONS = 10_000;

/** More than are served: an edge reads with the version that it holds, which may be an earlier one. */
const SLOTS = 16_384;

/** Bytes from the first entry to the end of the last, by sequence number. */
export type RevisionEnds = Int32Array;

export function createRevisionEnds(): RevisionEnds {
  return new Int32Array(new SharedArrayBuffer(SLOTS * Int32Array.BYTES_PER_ELEMENT));
}

export function noteEnd(ends: RevisionEnds, sequence: number, end: number): void {
  Atomics.store(ends, sequence % SLOTS, end);
}

/** Only for a version among the `KEPT_REVISIONS` before one that is published, or that one. */
export function endOf(ends: RevisionEnds, sequence: number): number {
  return Atomics.load(ends, sequence % SLOTS);
}
