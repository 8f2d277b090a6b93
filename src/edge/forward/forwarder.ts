/** Forwards the requests of one thread to the active instance, while that is another one. */
import { isDeepStrictEqual } from 'node:util';
import type { Dispatcher } from 'undici';
import { type CopyNotice, createCopies } from './copies.ts';
import type { Active } from './target.ts';
import { connectUpstream, localUpstream, type Upstream, type WholeAnswer } from './upstream.ts';

interface ForwarderOptions {
  readonly holdMs: number;
  /** The socket at which this thread takes forwarded requests; null if it takes none. */
  readonly socketPath: string | null;
  /** Gives a copy of a document to all threads. */
  share(copy: CopyNotice): void;
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

/**
 * Decides what happens to a request that the active instance must answer: when it is sent, held, sent again or given up
 * [link-5]. How it is sent is not known here.
 */

/** What became of a request that was sent. */
export type Attempt<Answer> =
  | { readonly kind: 'answered'; readonly answer: Answer }
  /** No byte of it was sent, or it was refused before any work began. */
  | { readonly kind: 'not begun' }
  /** It was sent, and the connection was lost before the answer. */
  | { readonly kind: 'lost' }
  /** It is no HTTP that the other side takes, so it can never be sent. */
  | { readonly kind: 'invalid' };

export interface Forwarded<Target, Answer> {
  /** Whether it changes nothing, so that a lost one was not carried out either. */
  readonly isRead: boolean;
  /** Whether it may be sent twice. */
  readonly isRepeatable: boolean;
  /** How much memory it takes until it is answered. */
  readonly bytes: number;
  /** Whether nobody waits for the answer anymore. */
  isGone(): boolean;
  /** `isRepeat` if it was sent before and may have been carried out. */
  send(target: Target, isRepeat: boolean): Promise<Attempt<Answer>>;
}

/** Why a request got no answer of an active instance: nothing was done, or that is not known. */
export type Unanswered = 'authority_unavailable' | 'bad_request' | 'outcome_unknown';

interface ForwardingOptions {
  /** How long a request is held while nobody can answer it, in milliseconds. */
  readonly holdMs: number;
  /** Monotonic milliseconds. */
  elapsed(): number;
}

/** While nobody is active, at most this many requests are held; further ones are refused at once. */
const MOST_HELD = 4096;
/** For all bodies that are held or on their way: an instance that stops to read must not fill the memory of others. */
const MOST_BYTES = 64 * 1024 ** 2;
/** How often held requests are sent again. */
const AGAIN_MS = 50;

export function createForwarding<Target>({ holdMs, elapsed }: ForwardingOptions) {
  let target: Target | null = null;
  let held = new Set<() => void>();
  let bytes = 0;
  let timer: NodeJS.Timeout | null = null;

  function resume(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const waiting = held;
    held = new Set();
    for (const wake of waiting) wake();
  }

  /** False if the request cannot be held until there may be somebody to answer it. */
  async function hold(deadline: number): Promise<boolean> {
    if (held.size >= MOST_HELD || elapsed() >= deadline) return false;
    await new Promise<void>((resolve) => {
      held.add(resolve);
      timer ??= setTimeout(resume, AGAIN_MS);
    });
    return true;
  }

  async function untilAnswered<Answer>(
    request: Forwarded<Target, Answer>,
  ): Promise<Answer | Unanswered> {
    const deadline = elapsed() + holdMs;
    let wasSent = false;
    const unanswered = () =>
      wasSent && !request.isRead ? 'outcome_unknown' : 'authority_unavailable';
    for (;;) {
      if (target !== null) {
        const attempt = await request.send(target, wasSent);
        if (attempt.kind === 'answered') return attempt.answer;
        if (attempt.kind === 'invalid') return 'bad_request';
        wasSent ||= attempt.kind === 'lost';
      }
      if (wasSent && !request.isRepeatable) return unanswered();
      if (request.isGone() || !(await hold(deadline))) return unanswered();
    }
  }

  return {
    /** Sends requests to this instance from now on; null while none is known to be active. */
    turnTo(next: Target | null): void {
      target = next;
      if (target !== null) resume();
    },
    async forward<Answer>(request: Forwarded<Target, Answer>): Promise<Answer | Unanswered> {
      if (bytes + request.bytes > MOST_BYTES) return 'authority_unavailable';
      bytes += request.bytes;
      try {
        return await untilAnswered(request);
      } finally {
        bytes -= request.bytes;
      }
    },
  };
}
