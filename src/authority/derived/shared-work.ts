/** Work that concurrent callers share. */
export interface SharedWork {
  /** Joins the running work, or starts it; a promise when it takes a while. */
  share(start: () => Promise<void> | undefined): Promise<void> | undefined;
}

export function createSharedWork(): SharedWork {
  let underWay: Promise<void> | null = null;
  return {
    share(start) {
      if (underWay !== null) return underWay;
      const started = start();
      if (started === undefined) return undefined;
      underWay = started.finally(() => {
        underWay = null;
      });
      return underWay;
    },
  };
}
