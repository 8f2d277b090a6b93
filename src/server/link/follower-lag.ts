/** How far behind a follower is, by what it reports many times a second. */

const SPAN_MS = 1000;

export interface FollowerLag {
  /** The state that the follower keeps ready was this many revisions behind; null while it keeps none. */
  report(revisions: number | null): void;
  /**
   * The least that it has reported within a second: so what was written a moment ago, and is about to be read, does
   * not count, and a follower that keeps up is at 0 however much is written. Null while it keeps no state ready.
   */
  revisions(): number | null;
}

export function createFollowerLag(elapsed: () => number): FollowerLag {
  let known: number | null = null;
  let least = Number.POSITIVE_INFINITY;
  let since = elapsed();

  function know(revisions: number | null): void {
    known = revisions;
    least = Number.POSITIVE_INFINITY;
    since = elapsed();
  }

  return {
    report(revisions) {
      if (revisions === null || known === null) {
        know(revisions);
        return;
      }
      least = Math.min(least, revisions);
      if (elapsed() - since >= SPAN_MS) know(least);
    },
    revisions: () => known,
  };
}
