/**
 * Threads of the service, and what two of them, or a process and its child, say to each other: calls, which the other
 * side answers with the result or the error of a procedure, and notices, which it does not answer. They arrive in the
 * order in which they were made, and before the answers that were given in the same message.
 */
import { Worker } from 'node:worker_threads';
import { problemText } from '../../base/error-message.ts';
import { workerEntry } from '../../base/worker-entry.ts';
import { Refusal } from '../../protocol/refusals.ts';

/** Named functions that the other side may call. Arguments and results are cloneable. */
export type Procedures = Readonly<Record<string, (...given: never[]) => unknown>>;

/** A `MessagePort`, a `Worker`, or what behaves like them. */
export interface Channel {
  postMessage(message: Message): void;
  on(event: 'message', listener: (message: Message) => void): unknown;
}

/**
 * The lists are flat because cloning one long list of strings and numbers is much cheaper than cloning many small
 * objects.
 */
export type Message = readonly [
  /** For each call, its id, the name of the procedure, the number of its arguments, and these; the id of a notice is 0. */
  called: readonly unknown[],
  /** For each call that was executed, its id and the result. */
  returned: readonly unknown[],
  /** For each call that failed, its id and the problem. */
  failed: readonly unknown[],
];

/** An error on its way. */
type Problem =
  | Pick<Refusal, 'refusal' | 'details'>
  | { readonly message: string; readonly text: string };

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (cause: Error) => void;
}

export interface Peer<Theirs extends Procedures> {
  /** Resolves with the result of the procedure; rejects with its error. */
  call<Name extends keyof Theirs & string>(
    name: Name,
    ...given: Parameters<Theirs[Name]>
  ): Promise<Awaited<ReturnType<Theirs[Name]>>>;
  /** Is not answered: an error of the procedure is an uncaught one of the other side. */
  notify<Name extends keyof Theirs & string>(name: Name, ...given: Parameters<Theirs[Name]>): void;
  /** Answers nothing from now on, and drops what has not been sent. */
  silence(): void;
}

/** With `gathers`, everything from one turn of the event loop is sent in one message, at its end. */
export function createPeer<Theirs extends Procedures>(
  channel: Channel,
  ours: Procedures,
  { gathers = false } = {},
): Peer<Theirs> {
  const outbox = createOutbox(channel, gathers);
  const waiting = new Map<number, Waiting>();
  let lastId = 0;

  /** A bug in one procedure fails only that call; the rest of the message is handled. */
  function carryOut(id: number, name: string, given: readonly unknown[]): void {
    try {
      const procedure = Object.hasOwn(ours, name) ? ours[name] : undefined;
      if (procedure === undefined) throw new Error(`There is no procedure ${name}`);
      const result = procedure(...(given as never[]));
      if (result instanceof Promise) {
        result.then(
          (late) => outbox.answer(id, late),
          (cause) => outbox.fail(id, cause),
        );
      } else outbox.answer(id, result);
    } catch (cause) {
      outbox.fail(id, cause);
    }
  }

  function takeWaiting(id: unknown): Waiting | undefined {
    const found = waiting.get(id as number);
    waiting.delete(id as number);
    return found;
  }

  channel.on('message', ([calls, results, problems]) => {
    outbox.whileHandling(() => {
      for (let at = 0; at < calls.length; ) {
        const [id, name] = [calls[at] as number, calls[at + 1] as string];
        const first = at + 3;
        at = first + (calls[at + 2] as number);
        carryOut(id, name, calls.slice(first, at));
      }
    });
    for (let at = 0; at < results.length; at += 2)
      takeWaiting(results[at])?.resolve(results[at + 1]);
    for (let at = 0; at < problems.length; at += 2) {
      takeWaiting(problems[at])?.reject(errorOf(problems[at + 1] as Problem));
    }
  });

  return {
    call(name, ...given) {
      return new Promise((resolve, reject) => {
        lastId += 1;
        waiting.set(lastId, { resolve: resolve as Waiting['resolve'], reject });
        outbox.call(lastId, name, given);
      });
    },
    notify: (name, ...given) => outbox.call(NOTICE, name, given),
    silence: outbox.silence,
  };
}

/** The calls and the results that are sent with the next message. */
function createOutbox(channel: Channel, gathers: boolean) {
  let called: unknown[] = [];
  let returned: unknown[] = [];
  let failed: unknown[] = [];
  let isHandling = false;
  let isScheduled = false;
  let isSilent = false;

  function drop(): void {
    called = [];
    returned = [];
    failed = [];
  }

  function send(): void {
    isScheduled = false;
    if (called.length === 0 && returned.length === 0 && failed.length === 0) return;
    const message: Message = [called, returned, failed];
    drop();
    channel.postMessage(message);
  }

  function sendSoon(): void {
    if (isHandling || isScheduled) return;
    isScheduled = gathers;
    if (gathers) setImmediate(send);
    else send();
  }

  return {
    call(id: number, name: string, given: readonly unknown[]): void {
      called.push(id, name, given.length);
      for (const argument of given) called.push(argument);
      sendSoon();
    },
    answer(id: number, result: unknown): void {
      if (id === NOTICE || isSilent) return;
      returned.push(id, result);
      sendSoon();
    },
    fail(id: number, cause: unknown): void {
      if (id === NOTICE) throwUncaught(cause);
      if (id === NOTICE || isSilent) return;
      failed.push(id, problemOf(cause));
      sendSoon();
    },
    /** What is called while a message is handled is sent as soon as all of it has been handled. */
    whileHandling(handle: () => void): void {
      isHandling = true;
      handle();
      isHandling = false;
      send();
    },
    silence(): void {
      isSilent = true;
      drop();
    },
  };
}

const NOTICE = 0;

/** In a turn of its own, so that the rest of the message is handled. */
function throwUncaught(cause: unknown): void {
  setImmediate(() => {
    throw cause;
  });
}

function problemOf(cause: unknown): Problem {
  if (cause instanceof Refusal) return { refusal: cause.refusal, details: cause.details };
  const text = problemText(cause);
  return { message: cause instanceof Error ? cause.message : text, text };
}

/** A refusal arrives as one; any other error with its message, and for the log where it was thrown. */
function errorOf(problem: Problem): Error {
  if ('refusal' in problem) return new Refusal(problem.refusal, problem.details);
  const error = new Error(problem.message);
  error.stack = `On another thread: ${problem.text}`;
  return error;
}

export function startWorker(
  name: 'edge' | 'gate' | 'list' | 'signer' | 'visit' | 'watchdog',
  workerData?: unknown,
): Worker {
  const { module, argv } = workerEntry(name, import.meta.url);
  return new Worker(module, { argv, workerData });
}

/** A failure is reported once. */
export function endOf(worker: Worker, onFailure: (cause: unknown) => void) {
  let isExpected = false;
  let hasFailed = false;
  worker.once('error', (cause) => {
    hasFailed = true;
    onFailure(cause);
  });
  const ended = new Promise<void>((resolve) => {
    worker.once('exit', (code) => {
      resolve();
      if (!isExpected && !hasFailed)
        onFailure(new Error(`The thread ended with exit code ${code}`));
    });
  });
  return {
    /** Makes the end of the thread expected from now on; resolves when it has ended. */
    expected(): Promise<void> {
      isExpected = true;
      return ended;
    },
  };
}
