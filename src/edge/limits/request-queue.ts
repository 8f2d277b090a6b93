/**
 * The queue of a thread for requests that arrive faster than they can be answered. Whatever renders, lists, searches or
 * verifies is done in slices, with a turn of the event loop after each: probes and everything else on this thread never
 * wait longer than for a slice, however many requests arrive at once. Documents that are kept as bytes wait only for
 * each other. A request that has waited longer
 * than clients wait is refused before any work on it, so that no time is wasted on clients that have given up.
 */

/** Requests wait in the line of their callers, so that no kind of caller waits for the crowd of another. */
export type Line = 'node' | 'operator' | 'document' | 'public';

export interface RequestQueueOptions {
  /** How long a request may wait, in milliseconds; 0 sets no limit. */
  readonly longestWaitMs: number;
  /** Monotonic milliseconds. */
  elapsed(): number;
  /** Calls back after everything else that has arrived was read. */
  schedule(next: () => void): void;
  /** Called for each piece of work: a thread that works off its queue does not hang. */
  progress(): void;
}

export interface Work {
  run(): void;
  /** Refuses a request that has waited too long; null if it may wait as long as it takes. */
  readonly shed: (() => void) | null;
  /** Bytes that are held while it waits. */
  readonly bytes: number;
}

interface Waiting extends Work {
  readonly since: number;
}

/**
 * The length of a slice. Answers are sent together after it, so a shorter slice costs throughput. Without slices, one
 * turn of the event loop could last for as long as requests are waiting.
 */
const SLICE_MS = 20;
/** The total size of all queued bodies of this thread. */
const MOST_BYTES = 64 * 1024 * 1024;
/** More than the sliced queries that can wait in the authority, so that these never keep all others waiting. */
const MOST_BEGUN = 128;

export type RequestQueue = ReturnType<typeof createRequestQueue>;

export function createRequestQueue(options: RequestQueueOptions) {
  const { longestWaitMs, elapsed, schedule, progress } = options;
  const lines = {
    node: new Set<Waiting>(),
    operator: new Set<Waiting>(),
    document: new Set<Waiting>(),
    public: new Set<Waiting>(),
  };
  const { node: nodes, public: strangers } = lines;
  /** Requests that have begun and go on. */
  const begun = new Set<Waiting>();
  /** Each turn of the event loop has a slice for nodes, and one for the next of these. */
  let others = [lines.operator, begun, lines.document, strangers];
  let publicBegun = 0;
  let heldBytes = 0;
  /** When the slice of each line in this turn of the event loop began, of those that had one. */
  const sliceBegan = new Map<Line, number>();
  let isScheduled = false;
  let send: () => void = () => undefined;

  function scheduleTurn(): void {
    if (isScheduled) return;
    isScheduled = true;
    schedule(takeTurn);
  }

  function mayBegin(line: ReadonlySet<Waiting>): boolean {
    return line !== strangers || publicBegun < MOST_BEGUN;
  }

  function isWaiting(line: ReadonlySet<Waiting>): boolean {
    return line.size > 0 && mayBegin(line);
  }

  function takeTurn(): void {
    isScheduled = false;
    sliceBegan.clear();
    const next = others.find(isWaiting);
    if (nodes.size === 0 && next === undefined) return;
    send();
    workOffNodes();
    if (next === undefined) {
      endTurn();
    } else {
      others = [...others.filter((line) => line !== next), next];
      void workOff(next).then(endTurn);
    }
  }

  function endTurn(): void {
    send();
    if (nodes.size > 0 || others.some(isWaiting)) scheduleTurn();
  }

  /** The proof of a node is checked at once, and whatever follows it is cheap. */
  function workOffNodes(): void {
    const began = elapsed();
    for (const waiting of nodes) {
      carryOut(nodes, waiting);
      if (elapsed() - began >= SLICE_MS) return;
    }
  }

  async function workOff(line: Set<Waiting>): Promise<void> {
    const began = elapsed();
    await null;
    for (const waiting of line) {
      carryOut(line, waiting);
      // What a request does as soon as it need not wait belongs to its slice.
      await settled();
      if (elapsed() - began >= SLICE_MS || !mayBegin(line)) return;
    }
  }

  function carryOut(line: Set<Waiting>, waiting: Waiting): void {
    leave(line, waiting);
    progress();
    const { since, shed, run } = waiting;
    if (shed !== null && longestWaitMs > 0 && elapsed() - since > longestWaitMs) shed();
    else run();
  }

  function leave(line: Set<Waiting>, waiting: Waiting): void {
    if (line.delete(waiting)) heldBytes -= waiting.bytes;
  }

  function wait(line: Set<Waiting>, { run, shed, bytes }: Work): (() => void) | null {
    if (heldBytes + bytes > MOST_BYTES) return null;
    const waiting = { run, shed, bytes, since: elapsed() };
    line.add(waiting);
    heldBytes += bytes;
    scheduleTurn();
    return () => leave(line, waiting);
  }

  return {
    /** Whether work of this line may begin at once; otherwise, it has to wait. */
    isFree(name: Line): boolean {
      const line = lines[name];
      if (line.size > 0 || !mayBegin(line)) return false;
      const began = sliceBegan.get(name);
      if (began === undefined) {
        sliceBegan.set(name, elapsed());
        scheduleTurn();
      } else if (elapsed() - began >= SLICE_MS) return false;
      progress();
      return true;
    },
    /** Queues the work and returns a function to call when its sender has left; null if it does not fit. */
    wait: (name: Line, work: Work) => wait(lines[name], work),
    /** Counts public requests that have begun: few enough do so at once that their answers fit into memory. */
    began(name: Line, end: Promise<unknown>): void {
      if (name !== 'public') return;
      publicBegun += 1;
      const over = () => {
        publicBegun -= 1;
        if (strangers.size > 0) scheduleTurn();
      };
      end.then(over, over);
    },
    /** Resolves in a slice, for a request that goes on after it has waited for something. */
    turn: () =>
      new Promise<void>((resolve) => void wait(begun, { run: resolve, shed: null, bytes: 0 })),
    /** Sets the function that sends the answers that are ready. */
    onSlice(listener: () => void): void {
      send = listener;
    },
  };
}

/** Resolves when all promises that are settled have called back; call it from such a callback. */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
