/**
 * What waits in sockets because their clients do not accept it: everything that is sent is copied for each of them, so
 * together they are bounded. Those that have been behind the longest are closed first.
 */

export interface BufferedSocket {
  getBufferedAmount(): number;
  close(): unknown;
}

/** Behind for this long, a client does not read, or not fast enough to stay current. */
export const STALLED_MS = 30_000;

/** `elapsed` is monotonic, in milliseconds. */
export function createBacklog(mostBytes: number, elapsed: () => number) {
  /** In the order in which they fell behind. */
  const behind = new Map<BufferedSocket, { readonly since: number; bytes: number }>();
  let total = 0;

  function leave(socket: BufferedSocket): void {
    total -= behind.get(socket)?.bytes ?? 0;
    behind.delete(socket);
  }

  function end(socket: BufferedSocket): void {
    leave(socket);
    socket.close();
  }

  return {
    /** Call after each message, and when a client has accepted more. */
    note(socket: BufferedSocket) {
      const bytes = socket.getBufferedAmount();
      if (bytes === 0) return leave(socket);
      const known = behind.get(socket) ?? { since: elapsed(), bytes: 0 };
      behind.set(socket, known);
      total += bytes - known.bytes;
      known.bytes = bytes;
      for (const slowest of behind.keys()) {
        if (total <= mostBytes) return;
        end(slowest);
      }
    },
    /** Call when a socket has closed. */
    leave,
    /** Closes the sockets that have not caught up for too long, however busy they are otherwise. */
    endStalled(): void {
      const limit = elapsed() - STALLED_MS;
      for (const [socket, { since }] of behind) {
        if (since > limit) return;
        end(socket);
      }
    },
  };
}
