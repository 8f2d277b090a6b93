/** Tracks requests in flight, with promises that wait for them. */

/** Answers that were begun between two barriers. */
export interface Generation {
  unfinished: number;
  onFinished: (() => void) | null;
}

export type Traffic = ReturnType<typeof createTraffic>;

export function createTraffic() {
  let underWay = 0;
  let onIdle: (() => void) | null = null;
  let current = newGeneration();
  let earlier: Promise<unknown> = Promise.resolve();

  /** Its answer was sent completely, or its client has disconnected. */
  function left(): void {
    underWay -= 1;
    if (underWay === 0) onIdle?.();
  }

  return {
    /** A request has arrived. */
    arrived(): void {
      underWay += 1;
    },
    /** Its answer begins: from now on it may read published documents. */
    begun(): Generation {
      current.unfinished += 1;
      return current;
    },
    /** It no longer reads published documents, although a slow client may still receive copies. */
    read(generation: Generation): void {
      generation.unfinished -= 1;
      if (generation.unfinished === 0) generation.onFinished?.();
    },
    left,
    /** Resolves when no request is in flight. */
    async idle(): Promise<void> {
      if (underWay === 0) return;
      await new Promise<void>((resolve) => {
        onIdle = resolve;
      });
    },
    /** Resolves when no answer that was begun before reads published documents. */
    async barrier(): Promise<void> {
      const generation = current;
      current = newGeneration();
      earlier = Promise.all([earlier, finish(generation)]);
      await earlier;
    },
  };
}

function newGeneration(): Generation {
  return { unfinished: 0, onFinished: null };
}

async function finish(generation: Generation): Promise<void> {
  if (generation.unfinished === 0) return;
  await new Promise<void>((resolve) => {
    generation.onFinished = resolve;
  });
}
