/** Forwards the requests of one thread to the active instance, while that is another one. */
import { isDeepStrictEqual } from 'node:util';
import type { Dispatcher } from 'undici';
import { type Copies, type Copy, createCopies } from './copies.ts';
import { createForwarding, type Forwarded, type Unanswered } from './forwarding.ts';
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

export interface Forwarder {
  /** Follows a change of the active instance. */
  turnTo(active: Active): void;
  /** Resolves with the answer of the active instance, or with why there is none. */
  forward<Answer>(request: Forwarded<Upstream, Answer>): Promise<Answer | Unanswered>;
  /** Null if the active instance does not answer in time. */
  read(path: string, milliseconds: number): Promise<WholeAnswer | null>;
  /** For WebSockets to the active instance; null while none can be reached. */
  lasting(): Dispatcher | null;
  readonly copies: Copies;
  close(): void;
}

export function createForwarder(options: ForwarderOptions): Forwarder {
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
    turnTo(next) {
      if (isDeepStrictEqual(active, next)) return;
      const before = upstream;
      active = next;
      upstream = open(next);
      forwarding.turnTo(upstream);
      before?.close();
    },
    forward: forwarding.forward,
    read: async (path, milliseconds) => (await upstream?.read(path, milliseconds)) ?? null,
    lasting: () => (upstream?.isUp() === true ? upstream.lasting : null),
    copies,
    close() {
      upstream?.close();
      upstream = null;
      forwarding.turnTo(null);
    },
  };
}
