/** Waiting that the signal of a caller may end. */

interface TimeLimit {
  readonly signal: AbortSignal;
  /** Aborts the signal. */
  end(): void;
  /** Begins the time again. */
  restart(): void;
  /** Only `end` aborts the signal from now on. */
  release(): void;
}

/**
 * A signal that is aborted after this time, or with the given one. Node.js 20 would keep every signal that
 * `AbortSignal.any` has returned for as long as the given one.
 */
export function timeLimit(ms: number, given: AbortSignal | undefined): TimeLimit {
  const controller = new AbortController();
  const end = () => controller.abort(given?.reason);
  let timer = setTimeout(end, ms);
  const leave = given && onAbort(given, end);
  if (given?.aborted === true) end();
  return {
    signal: controller.signal,
    end,
    restart() {
      clearTimeout(timer);
      timer = setTimeout(end, ms);
    },
    release() {
      clearTimeout(timer);
      leave?.();
    },
  };
}

/** Rejects with the signal's reason when it is aborted before. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const leave = signal && onAbort(signal, stop);
    const timer = setTimeout(() => {
      leave?.();
      resolve();
    }, ms);
    function stop(): void {
      clearTimeout(timer);
      reject(signal?.reason);
    }
  });
}

interface Watched {
  readonly acts: Set<() => void>;
  readonly run: () => void;
}

const watched = new WeakMap<AbortSignal, Watched>();

/**
 * Calls `act` when the signal is aborted, unless the returned function was called before. All share one listener, because
 * Node.js warns of a leak when a signal has more than ten, and many nodes of one process may stop with one signal.
 */
function onAbort(signal: AbortSignal, act: () => void): () => void {
  const { acts, run } = watched.get(signal) ?? watch(signal);
  acts.add(act);
  return () => {
    acts.delete(act);
    if (acts.size > 0) return;
    signal.removeEventListener('abort', run);
    watched.delete(signal);
  };
}

function watch(signal: AbortSignal): Watched {
  const acts = new Set<() => void>();
  const run = () => {
    for (const act of acts) act();
  };
  signal.addEventListener('abort', run, { once: true });
  const found = { acts, run };
  watched.set(signal, found);
  return found;
}
