/**
 * A queue for node requests that arrive faster than they can be answered. Checking their proofs is expensive, so it is
 * done in slices with everything else answered in between: health checks, operators and readers never wait behind a
 * fleet that reconnects all at once. A request that has waited longer than clients wait is refused before its proof is
 * checked, so that no time is wasted on clients that have given up.
 */

export interface NodeQueueOptions<Request> {
  /** How long a request may wait, in milliseconds; 0 sets no limit. */
  readonly longestWaitMs: number;
  /** Monotonic milliseconds. */
  elapsed(): number;
  /** Calls back after everything else that has arrived was read. */
  schedule(next: () => void): void;
  answer(request: Request, body: Uint8Array): void;
  /** Refuses a request that has waited too long or does not fit into the queue. */
  shed(request: Request): void;
  /** Sends the answers that are ready. */
  send(): void;
}

export interface NodeQueue<Request> {
  /** Answers now and returns null, or queues the request and returns a function to call when the sender has left. */
  take(request: Request, body: Uint8Array): (() => void) | null;
}

interface Waiting<Request> {
  readonly request: Request;
  readonly body: Uint8Array;
  readonly since: number;
}

/**
 * The length of a slice of proof checks. Answers are sent together after it, so a shorter slice costs throughput.
 * Without slices, one turn of the event loop could last so long that the watchdog considers the thread hung.
 */
const SHARE_MS = 20;
/** The total size of all queued bodies of this edge. */
const MOST_BYTES = 64 * 1024 * 1024;

export function createNodeQueue<Request>(options: NodeQueueOptions<Request>): NodeQueue<Request> {
  const { longestWaitMs, elapsed, schedule, answer, shed, send } = options;
  const queue = new Set<Waiting<Request>>();
  let heldBytes = 0;
  /** When the slice in this turn of the event loop began; null if there was none. */
  let shareBegan: number | null = null;
  let isScheduled = false;

  function isMyTurn(): boolean {
    if (queue.size > 0) return false;
    if (shareBegan !== null) return elapsed() - shareBegan < SHARE_MS;
    shareBegan = elapsed();
    scheduleTurn();
    return true;
  }

  function scheduleTurn(): void {
    if (isScheduled) return;
    isScheduled = true;
    schedule(takeTurn);
  }

  function takeTurn(): void {
    isScheduled = false;
    shareBegan = null;
    if (queue.size === 0) return;
    send();
    workOff();
    send();
    if (queue.size > 0) scheduleTurn();
  }

  function workOff(): void {
    const began = elapsed();
    let now = began;
    for (const waiting of queue) {
      leave(waiting);
      if (hasWaitedTooLong(waiting, now)) shed(waiting.request);
      else answer(waiting.request, waiting.body);
      now = elapsed();
      if (now - began >= SHARE_MS) return;
    }
  }

  function hasWaitedTooLong({ since }: Waiting<Request>, now: number): boolean {
    return longestWaitMs > 0 && now - since > longestWaitMs;
  }

  function leave(waiting: Waiting<Request>): void {
    if (queue.delete(waiting)) heldBytes -= waiting.body.byteLength;
  }

  return {
    take(request, body) {
      if (isMyTurn()) {
        answer(request, body);
        return null;
      }
      if (heldBytes + body.byteLength > MOST_BYTES) {
        shed(request);
        return null;
      }
      // The bytes of an uncopied body become invalid when this call returns.
      const waiting = { request, body: Buffer.from(body), since: elapsed() };
      queue.add(waiting);
      heldBytes += waiting.body.byteLength;
      return () => leave(waiting);
    },
  };
}
