/**
 * What a start knows of heartbeats that were accepted before it. The newest timestamp that each node signed
 * is written with liveness, so after a clean stop it is all there. After a crash the last flush is missing:
 * nothing signed before the start passes then, and what was signed further ahead was made durable at once.
 */

/** Heartbeats signed further ahead than this are durable before they are acknowledged. */
export const AHEAD_MS = 500;

export interface RestartFloor {
  /** Nothing that the node signed up to this instant passes; it applies until the node has a window. */
  of(nodeKey: string): number;
  /** Whether a heartbeat signed then may have been accepted without being in the flushed liveness. */
  isInDoubt(signedAt: number): boolean;
  /** Whether what a crash made unknown can still be replayed: then the next start must know of it, too. */
  outlivesProcess(): boolean;
}

export interface RestartFloorOptions {
  readonly closedCleanly: boolean;
  /** At least `AHEAD_MS` after the last heartbeat that the earlier process accepted. */
  readonly startedAt: number;
  readonly toleranceMs: number;
  readonly now: () => number;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** The newest timestamp that is known of the node; 0 when there is none. */
  readonly newestSignedBy: (nodeKey: string) => number;
}

export function createRestartFloor(options: RestartFloorOptions): RestartFloor {
  const { closedCleanly, startedAt, toleranceMs, now, elapsed, newestSignedBy } = options;
  const startedElapsed = elapsed();
  const crashFloor = closedCleanly ? 0 : startedAt;
  return {
    of(nodeKey) {
      const newest = newestSignedBy(nodeKey);
      // Signed under a clock that was wrong: it must not bar the node until that day comes.
      if (newest > now() + toleranceMs) return Math.max(crashFloor, startedAt);
      return Math.max(crashFloor, newest);
    },
    isInDoubt: (signedAt) => !closedCleanly && signedAt <= startedAt + toleranceMs,
    outlivesProcess() {
      if (closedCleanly) return false;
      return now() <= startedAt + toleranceMs || elapsed() <= startedElapsed + toleranceMs;
    },
  };
}
