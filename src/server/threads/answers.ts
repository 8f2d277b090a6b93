/** The answers to requests of edges: how they are given, collected, sent and read. */
import { problemText } from '../../base/log/problem.ts';
import type { LocalRateLimits } from '../../edge/limits/rate-limit.ts';
import type { RequestQueue } from '../../edge/limits/request-queue.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import {
  CALLS,
  type Call,
  type CallName,
  type CallOf,
  isQuestion,
} from '../../protocol/contract/calls.ts';
import { fromCloneable, toCloneable } from './cloneable.ts';
import { answerLimit } from './limit-questions.ts';
import type { Answers, Batch } from './messages.ts';
import { HEARTBEAT_ROW, unpackHeartbeat } from './packed-heartbeat.ts';

export type Outbox = ReturnType<typeof createOutbox>;

/**
 * Collects the answers of one turn into one message, after the documents published before them.
 */
export function createOutbox(thread: { post(message: Answers): void }) {
  let publications: Answers['publications'][number][] = [];
  let answered: unknown[] = [];
  let others: unknown[] = [];
  let failed: unknown[] = [];
  let isGathering = false;
  let open = true;
  const later = atEndOfTurn(flush);

  function flush(): void {
    const lists = [publications, answered, others, failed];
    if (!open || lists.every(({ length }) => length === 0)) return;
    thread.post({ type: 'answers', publications, answered, others, failed });
    publications = [];
    answered = [];
    others = [];
    failed = [];
  }

  function schedule(): void {
    if (!isGathering) later();
  }

  return {
    publish(publication: Answers['publications'][number]) {
      publications.push(publication);
      schedule();
    },
    answer(id: unknown, answer: Answer) {
      if (answer.ok && answer.isRepeated !== true) answered.push(id, answer.json);
      else others.push(id, toCloneable(answer));
      schedule();
    },
    fail(id: unknown, cause: unknown) {
      failed.push(id, problemText(cause));
      schedule();
    },
    /** Sends the answers given during `work` together, as soon as it returns. */
    together(work: () => void) {
      isGathering = true;
      try {
        work();
      } finally {
        isGathering = false;
        flush();
      }
    },
    close() {
      open = false;
    },
  };
}

/** Returns a function that schedules `send` for the end of the turn, once however often it is called. */
export function atEndOfTurn(send: () => void): () => void {
  let isScheduled = false;
  function sendNow(): void {
    isScheduled = false;
    send();
  }
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(sendNow);
  };
}

/** The handler of requests from an edge. */
export interface Answering {
  readonly call: Call;
  /** The queue of this thread. */
  readonly queue: RequestQueue;
  readonly limits: LocalRateLimits;
  exposition(): Promise<string>;
}

export function carryOut(
  batch: Pick<Batch, 'heartbeats' | 'requests'>,
  host: Answering,
  outbox: Outbox,
): void {
  outbox.together(() => answerAll(batch, host, outbox));
}

function answerAll(
  { heartbeats, requests }: Pick<Batch, 'heartbeats' | 'requests'>,
  host: Answering,
  outbox: Outbox,
): void {
  // A bug in one command fails only that request; the rest of the batch is executed.
  for (let i = 0; i < heartbeats.length; i += HEARTBEAT_ROW) {
    const id = heartbeats[i];
    try {
      reply(outbox, id, host.call('heartbeat', unpackHeartbeat(heartbeats, i)));
    } catch (cause) {
      outbox.fail(id, cause);
    }
  }
  for (let i = 0; i < requests.length; i += 3) {
    const [id, name, question] = [requests[i], String(requests[i + 1]), requests[i + 2]];
    const run = () => {
      try {
        reply(outbox, id, answerTo(name, question, host));
      } catch (cause) {
        outbox.fail(id, cause);
      }
    };
    // Few wait here, because an edge begins few at once.
    const mustWait = isAskedFor(name, question) && !host.queue.isFree('public');
    if (mustWait) host.queue.wait('public', { run, shed: null, bytes: 0 });
    else run();
  }
}

function isAskedFor(name: string, question: unknown): boolean {
  return Object.hasOwn(CALLS, name) && isQuestion(name as CallName, question);
}

/** Puts the answer into the outbox, now or when the promise settles. */
function reply(outbox: Outbox, id: unknown, answer: Answer | Promise<Answer>): void {
  if (answer instanceof Promise) {
    answer.then(
      (late) => outbox.answer(id, late),
      (cause) => outbox.fail(id, cause),
    );
  } else {
    outbox.answer(id, answer);
  }
}

function answerTo(
  name: string,
  question: unknown,
  { call, limits, exposition }: Answering,
): Answer | Promise<Answer> {
  if (name === '#exposition') return exposition().then(answerOf);
  return (
    answerLimit(limits, name, question) ??
    call(name as CallName, fromCloneable(question) as CallOf<CallName>)
  );
}

function answerOf(json: string): Answer {
  return { ok: true, json };
}

/** Calls back for each request that was answered, or failed because of a bug. */
export function readAnswers(
  { answered, others, failed }: Answers,
  settle: {
    answered(id: unknown, answer: Answer): void;
    failed(id: unknown, problem: string): void;
  },
): void {
  for (let i = 0; i < answered.length; i += 2) {
    settle.answered(answered[i], { ok: true, json: answered[i + 1] as string });
  }
  for (let i = 0; i < others.length; i += 2) {
    settle.answered(others[i], fromCloneable(others[i + 1]) as Answer);
  }
  for (let i = 0; i < failed.length; i += 2) {
    settle.failed(failed[i], `In the authority: ${failed[i + 1]}`);
  }
}
