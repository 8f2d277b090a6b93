/**
 * Requests of nodes that come faster than they can be answered wait here, in the order in which they came. Their
 * proofs are what costs: between shares of that work everything else is answered, so that health checks,
 * operators and readers never stand behind a fleet that comes back at once. Anyone who has waited longer than a
 * client waits for an answer is turned away before its proof is checked, which leaves the time to those who
 * still listen.
 */

export interface NodeQueueOptions<Request> {
  /** How long a request may wait, in milliseconds; 0 is for ever. */
  readonly longestWaitMs: number;
  /** Monotonic milliseconds. */
  elapsed(): number;
  /** Runs once what else has arrived was read. */
  schedule(next: () => void): void;
  answer(request: Request, body: Uint8Array): void;
  /** Turns a request away that has waited too long, or for which there is no room. */
  shed(request: Request): void;
  /** Sends the answers that are ready. */
  send(): void;
}

export interface NodeQueue<Request> {
  /** Answers now (null), or later: then call what is returned when the sender has left. */
  take(request: Request, body: Uint8Array): (() => void) | null;
}

interface Waiting<Request> {
  readonly request: Request;
  readonly body: Uint8Array;
  readonly since: number;
}

/**
 * How long proofs are checked before everything else gets its turn. Answers are sent together after it, so a
 * shorter one costs throughput. Without it, a turn of the event loop would last for as long as the proofs take that arrive in
 * it, and a thread that beats no more is taken for one that hangs.
 */
const SHARE_MS = 20;
/** The total of all bodies that wait on this edge. */
const MOST_BYTES = 64 * 1024 * 1024;

export function createNodeQueue<Request>(options: NodeQueueOptions<Request>): NodeQueue<Request> {
  const { longestWaitMs, elapsed, schedule, answer, shed, send } = options;
  const queue = new Set<Waiting<Request>>();
  let heldBytes = 0;
  /** When the share of this turn of the event loop began; null when none has. */
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
      // The bytes of a body in one piece become invalid when this call returns.
      const waiting = { request, body: Buffer.from(body), since: elapsed() };
      queue.add(waiting);
      heldBytes += waiting.body.byteLength;
      return () => leave(waiting);
    },
  };
}
