/** Work of one thread that several ask for: one after the other, one for all, or with pauses between. */
export type Turns = ReturnType<typeof createTurns>;

export function createTurns() {
  let last: Promise<unknown> = Promise.resolve();
  return {
    /** Runs the work when all earlier work has ended, well or not. */
    run<T>(work: () => Promise<T>): Promise<T> {
      const done = last.then(work);
      last = done.catch(() => undefined);
      return done;
    },
    /** Resolves when all work so far has ended. */
    async idle(): Promise<void> {
      await last;
    },
  };
}

/** Work that concurrent callers share. */
export function createSharedWork() {
  let underWay: Promise<void> | null = null;
  return {
    /** Joins the work that is under way, or starts it; a promise when it takes a while. */
    share<Started extends Promise<void> | undefined>(
      start: () => Started,
    ): Promise<void> | Started {
      if (underWay !== null) return underWay;
      const started = start();
      if (started === undefined) return started;
      underWay = started.finally(() => {
        underWay = null;
      });
      return underWay;
    },
  };
}

export interface PauseLengths {
  /** A pause is this many times as long as the work before it. */
  readonly perWork: number;
  readonly shortestMs?: number;
  readonly longestMs?: number;
}

/** Pauses after work, in proportion to its time: however often it is asked for, it takes a bounded part of the thread. */
export type Pauses = ReturnType<typeof createPauses>;

export function createPauses(
  elapsed: () => number,
  { perWork, shortestMs = 0, longestMs = Number.POSITIVE_INFINITY }: PauseLengths,
) {
  let until = Number.NEGATIVE_INFINITY;
  return {
    /** Milliseconds until the pause is over; not above 0 when it is. */
    left: (): number => until - elapsed(),
    /** Work that began then, in monotonic milliseconds, has ended. */
    after(began: number): void {
      const ended = elapsed();
      until = ended + Math.min(Math.max(perWork * (ended - began), shortestMs), longestMs);
    },
  };
}
