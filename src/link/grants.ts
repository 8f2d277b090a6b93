/**
 * Who may answer from copies of the public documents, and until when. A change is acknowledged only when every
 * follower has applied it, or may not answer from its copies any more: so a slow follower delays
 * an acknowledgment by at most one grant, and is never wrong.
 */

/** How long a follower may answer from its copies without hearing anything, milliseconds. */
export const GRANT_MS = 400;

/** Of one connection; it outlives the connection. */
export interface Grant {
  /** The number of the last change that the follower has applied. */
  applied: number;
  /** When its copies must not be served any more, monotonic milliseconds. */
  until: number;
}

export interface Grants {
  /** None of its copies may be served before the first extension. */
  create(): Grant;
  extend(grant: Grant, until: number): void;
  /** The follower has applied everything up to this change. */
  applied(grant: Grant, change: number): void;
  /** The follower answers nothing from its copies any more. */
  end(grant: Grant): void;
  /** Null when the change may be acknowledged now. */
  awaitAll(change: number): Promise<void> | null;
  /** Resolves when no copy may be served. */
  over(): Promise<void>;
}

interface Waiter {
  readonly change: number;
  readonly resolve: () => void;
}

export function createGrants(elapsed: () => number): Grants {
  const grants = new Set<Grant>();
  let waiters: Waiter[] = [];
  let isScheduled = false;

  /** Grants that are over bind nobody; a follower that comes back gets another after it has applied everything. */
  function prune(): void {
    const now = elapsed();
    for (const grant of grants) if (grant.until <= now) grants.delete(grant);
  }

  function isApplied(change: number): boolean {
    for (const { applied } of grants) if (applied < change) return false;
    return true;
  }

  function review(): void {
    if (waiters.length === 0) return;
    prune();
    const ready = waiters.filter(({ change }) => isApplied(change));
    waiters = waiters.filter(({ change }) => !isApplied(change));
    for (const { resolve } of ready) resolve();
    if (waiters.length === 0 || isScheduled) return;
    isScheduled = true;
    setTimeout(reviewLater, untilNextEnd());
  }

  function reviewLater(): void {
    isScheduled = false;
    review();
  }

  function untilNextEnd(): number {
    return Math.max(
      1,
      Math.ceil(Math.min(...Array.from(grants, ({ until }) => until)) - elapsed()),
    );
  }

  function awaitAll(change: number): Promise<void> | null {
    if (isApplied(change)) return null;
    return new Promise((resolve) => {
      waiters.push({ change, resolve });
      review();
    });
  }

  return {
    create: () => ({ applied: 0, until: 0 }),
    extend(grant, until) {
      grant.until = Math.max(grant.until, until);
      grants.add(grant);
    },
    applied(grant, change) {
      grant.applied = Math.max(grant.applied, change);
      review();
    },
    end(grant) {
      grant.until = 0;
      grants.delete(grant);
      review();
    },
    awaitAll,
    over: async () => awaitAll(Number.POSITIVE_INFINITY) ?? undefined,
  };
}
