/** Forwards the requests of one thread to the active instance, while that is another one. */
import { isDeepStrictEqual } from 'node:util';
import type { Dispatcher } from 'undici';
import { type Copy, createCopies } from './copies.ts';
import { createForwarding } from './forwarding.ts';
import type { Active } from './target.ts';
import { connectUpstream, localUpstream, type Upstream, type WholeAnswer } from './upstream.ts';

export interface ForwarderOptions {
  readonly holdMs: number;
  /** The socket at which this thread takes forwarded requests; null if it takes none. */
  readonly socketPath: string | null;
  /** Gives a copy of a document to all threads. */
  share(copy: Copy): void;
  /** The active instance has answered, after this many milliseconds. */
  answered(milliseconds: number): void;
  /** Monotonic milliseconds. */
  elapsed(): number;
}

export type Forwarder = ReturnType<typeof createForwarder>;

export function createForwarder(options: ForwarderOptions) {
  const { elapsed, socketPath } = options;
  const forwarding = createForwarding<Upstream>(options);
  const copies = createCopies(options);
  let active: Active = null;
  let upstream: Upstream | null = null;

  function open(next: Active): Upstream | null {
    if (next === null) return null;
    if (next === 'this instance') return socketPath === null ? null : localUpstream(socketPath);
    return connectUpstream({
      target: next,
      elapsed,
      answered: options.answered,
      reached: () => forwarding.turnTo(upstream),
    });
  }

  return {
    /** Follows a change of the active instance. */
    turnTo(next: Active): void {
      if (isDeepStrictEqual(active, next)) return;
      const before = upstream;
      active = next;
      upstream = open(next);
      forwarding.turnTo(upstream);
      before?.close();
    },
    /** Resolves with the answer of the active instance, or with why there is none. */
    forward: forwarding.forward,
    /** Null if the active instance does not answer in time. */
    read: async (path: string, milliseconds: number): Promise<WholeAnswer | null> =>
      (await upstream?.read(path, milliseconds)) ?? null,
    /** For WebSockets to the active instance; null while none can be reached. */
    lasting: (): Dispatcher | null => (upstream?.isUp() === true ? upstream.lasting : null),
    copies,
    close(): void {
      upstream?.close();
      upstream = null;
      forwarding.turnTo(null);
    },
  };
}
