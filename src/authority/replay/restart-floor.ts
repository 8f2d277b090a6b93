/**
 * What a start knows about heartbeats that were accepted before it. The newest timestamp that each node
 * signed is written with liveness, so it is complete after a clean stop. After a crash the last flush is
 * missing, and everything signed before the start is refused.
 */

export interface RestartFloor {
  /** Requests that the node signed up to this instant are refused; it applies until the node has a window. */
  of(nodeKey: string): number;
  /**
   * Whether heartbeats that a crash lost can still be replayed: then the next start must know about them,
   * too.
   */
  outlivesProcess(): boolean;
}

export interface RestartFloorOptions {
  readonly closedCleanly: boolean;
  readonly startedAt: number;
  /** When the earlier process last heard of a node; later than the start if the clock was set back between. */
  readonly lastContactAt: number;
  /** How far ahead of the clock heartbeats may have been signed whose nonces are not durable. */
  readonly reserveMs: number;
  readonly toleranceMs: number;
  readonly now: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** The newest known timestamp of the node; 0 when there is none. */
  readonly newestSignedBy: (nodeKey: string) => number;
}

export function createRestartFloor(options: RestartFloorOptions): RestartFloor {
  const { closedCleanly, startedAt, lastContactAt, reserveMs, toleranceMs } = options;
  const { now, elapsed, newestSignedBy } = options;
  const startedElapsed = elapsed();
  const crashFloor = closedCleanly ? 0 : startedAt;
  const latestBefore = lastContactAt + reserveMs;
  // What was accepted before a larger step is too far ahead to pass, and nodes need not wait for that time.
  const wasSetBack = lastContactAt > startedAt && latestBefore <= startedAt + toleranceMs;
  /** Nothing was accepted that was signed later, unless its nonce is durable. */
  const latestAccepted = wasSetBack ? latestBefore : startedAt;
  return {
    of(nodeKey) {
      const newest = newestSignedBy(nodeKey);
      // It was signed under a wrong clock and must not lock the node out until that day.
      if (newest > now() + toleranceMs) return latestAccepted;
      return Math.max(crashFloor, newest);
    },
    outlivesProcess() {
      if (closedCleanly) return false;
      return now() <= startedAt + toleranceMs || elapsed() <= startedElapsed + toleranceMs;
    },
  };
}
