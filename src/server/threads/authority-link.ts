/** The authority, as seen by an edge on another thread. */

import type { RateLimitSettings, RateLimits } from '../../edge/limits/rate-limit.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { Call, CallName, CallOf } from '../../protocol/contract/calls.ts';
import { createDocumentCache, type DocumentCache } from '../../protocol/contract/publications.ts';
import { atEndOfTurn, readAnswers } from './answers.ts';
import { toCloneable } from './cloneable.ts';
import { askedLimits, textOf } from './limit-questions.ts';
import type { Answers, FromEdge, SharedState } from './messages.ts';
import { packHeartbeat } from './packed-heartbeat.ts';

export interface AuthorityLink {
  readonly call: Call;
  readonly documents: DocumentCache;
  readonly limits: RateLimits;
  exposition(): Promise<string>;
  log(line: string): void;
  take(answers: Answers): void;
  /** Sends accumulated requests now instead of at the end of this turn. */
  flush(): void;
}

/** The pending caller. */
interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (problem: Error) => void;
}

export function createAuthorityLink(
  post: (message: FromEdge) => void,
  shared: SharedState,
  rateLimits: RateLimitSettings,
): AuthorityLink {
  const documents = createDocumentCache(shared.documentVersions);
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let heartbeats: unknown[] = [];
  let requests: unknown[] = [];
  let log = '';
  /** All requests of one turn of the event loop are sent together. */
  const schedule = atEndOfTurn(flush);

  function flush(): void {
    if (heartbeats.length === 0 && requests.length === 0 && log === '') return;
    post({ type: 'batch', heartbeats, requests, log });
    heartbeats = [];
    requests = [];
    log = '';
  }

  function awaitAnswer(id: number): Promise<Answer> {
    schedule();
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  function ask(name: string, question: unknown): Promise<Answer> {
    lastId += 1;
    requests.push(lastId, name, toCloneable(question));
    return awaitAnswer(lastId);
  }

  function takeWaiting(id: unknown): Waiting | undefined {
    const asked = waiting.get(id as number);
    waiting.delete(id as number);
    return asked;
  }

  return {
    documents,
    call<Name extends CallName>(name: Name, command: CallOf<Name>): Promise<Answer> {
      if (name !== 'heartbeat') return ask(name, command);
      lastId += 1;
      packHeartbeat(heartbeats, lastId, command as CallOf<'heartbeat'>);
      return awaitAnswer(lastId);
    },
    limits: askedLimits(rateLimits, ask),
    exposition: () => ask('#exposition', null).then(textOf),
    log(line) {
      log += line;
      schedule();
    },
    take(answers) {
      for (const publication of answers.publications) documents.take(publication);
      readAnswers(answers, {
        answered: (id, answer) => takeWaiting(id)?.resolve(answer),
        failed: (id, problem) => takeWaiting(id)?.reject(new Error(problem)),
      });
    },
    flush,
  };
}
