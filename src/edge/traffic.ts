/** Tracks requests in flight, with promises that wait for them. */

/** Answers that were begun between two barriers. */
export interface Generation {
  unfinished: number;
  onFinished: (() => void) | null;
}

export interface Traffic {
  /** A request has arrived. */
  arrived(): void;
  /** Its answer begins: from now on it may read published documents. */
  begun(): Generation;
  /** It no longer reads published documents, although a slow client may still receive copies. */
  read(generation: Generation): void;
  /** Its answer was sent completely, or its client has disconnected. */
  left(): void;
  /** Resolves when no request is in flight. */
  idle(): Promise<void>;
  /** Resolves when no answer that was begun before reads published documents. */
  barrier(): Promise<void>;
}

export function createTraffic(): Traffic {
  let underWay = 0;
  let onIdle: (() => void) | null = null;
  let current = newGeneration();
  let earlier: Promise<unknown> = Promise.resolve();

  function left(): void {
    underWay -= 1;
    if (underWay === 0) onIdle?.();
  }

  return {
    arrived() {
      underWay += 1;
    },
    begun() {
      current.unfinished += 1;
      return current;
    },
    read(generation) {
      generation.unfinished -= 1;
      if (generation.unfinished === 0) generation.onFinished?.();
    },
    left,
    async idle() {
      if (underWay === 0) return;
      await new Promise<void>((resolve) => {
        onIdle = resolve;
      });
    },
    async barrier() {
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
