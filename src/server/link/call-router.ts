/**
 * Where the edges of an instance send their calls, no matter who writes: to the authority of this process, or over the
 * link to that of another. While there is none, they are held for a while, so that clients see a pause and not an
 * error when another instance takes over.
 */

import type { RefusalName } from '../../base/refusal.ts';
import type { LocalRateLimits, RateLimitSettings, RateLimits } from '../../edge/rate-limit.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import {
  type Call,
  type CallName,
  type CallOf,
  isRepeatable,
  OUTCOME_UNKNOWN,
  UNAVAILABLE,
} from '../../protocol/contract/calls.ts';
import { type Outbox, type Relay, type Rows, reply } from '../threads/edge-threads.ts';
import { answerLimit, askedLimits } from '../threads/limit-questions.ts';
import { HEARTBEAT_ROW, unpackHeartbeat } from '../threads/packed-heartbeat.ts';
import type { LinkClient, Outcome } from './client.ts';

export interface CallRouterOptions {
  /** Null where instances do not talk to each other. */
  readonly client: LinkClient | null;
  /** How long a request is held while nobody writes, milliseconds. */
  readonly holdMs: number;
  readonly rateLimits: RateLimitSettings;
  elapsed(): number;
}

export interface CallRouter {
  readonly call: Call;
  /**
   * Sends the heartbeats of a thread on as they are, and their answers to its outbox; false when this process is to
   * answer them itself.
   */
  readonly relay: Relay;
  readonly limits: RateLimits;
  /** From now on this process writes. */
  lead(call: Call, limits: LocalRateLimits): void;
  /** Sends what is held; call when requests can be sent again. */
  resume(): void;
}

/** Beyond this, requests are refused at once while nobody writes. */
const MOST_HELD = 4096;
/** How often held requests are tried again. */
const RETRY_MS = 50;

/** Refusals before anything was done. */
const NOT_BEGUN: ReadonlySet<RefusalName> = new Set(['authority_unavailable', 'shutting_down']);

/** What answers in this process. */
interface Lead {
  readonly call: Call;
  readonly limits: LocalRateLimits;
}

interface Request {
  readonly name: string;
  readonly question: unknown;
  /** When it is refused if nobody could be asked, monotonic milliseconds. */
  readonly deadline: number;
  readonly resolve: (answer: Answer | Promise<Answer>) => void;
  readonly reject: (cause: unknown) => void;
}

export function createCallRouter({
  client,
  holdMs,
  rateLimits,
  elapsed,
}: CallRouterOptions): CallRouter {
  let lead: Lead | null = null;
  let held: Request[] = [];
  let timer: NodeJS.Timeout | null = null;

  const asked = askedLimits(rateLimits, ask);

  function limits(): RateLimits {
    return lead?.limits ?? asked;
  }

  function ask(name: string, question: unknown): Promise<Answer> {
    return new Promise((resolve, reject) => {
      attempt({ name, question, deadline: elapsed() + holdMs, resolve, reject });
    });
  }

  function relayOne(rows: Rows, start: number, deadline: number, outbox: Outbox): void {
    const isSent = client?.sendHeartbeat(rows, start, (outcome) => {
      if (outcome.kind === 'answered' && !hasNotBegun(outcome.answer)) {
        outbox.answer(rows[start], outcome.answer);
      } else settle(requestOf(rows, start, deadline, outbox), outcome);
    });
    if (isSent !== true) hold(requestOf(rows, start, deadline, outbox));
  }

  function attempt(request: Request): void {
    const { name, question } = request;
    if (lead !== null) {
      answerHere(lead, request);
      return;
    }
    const isSent = client?.send(name, question, (outcome) => settle(request, outcome)) === true;
    if (!isSent) hold(request);
  }

  function settle(request: Request, outcome: Outcome): void {
    if (outcome.kind === 'failed') {
      request.reject(new Error(`In the authority: ${outcome.problem}`));
    } else if (outcome.kind === 'lost') {
      if (mayBeAskedAgain(request.name)) hold(request);
      else request.resolve(OUTCOME_UNKNOWN);
    } else {
      const { answer } = outcome;
      if (hasNotBegun(answer)) hold(request);
      else request.resolve(answer);
    }
  }

  function hold(request: Request): void {
    if (elapsed() >= request.deadline || held.length >= MOST_HELD) {
      request.resolve(UNAVAILABLE);
      return;
    }
    held.push(request);
    timer ??= setTimeout(resume, RETRY_MS);
  }

  function resume(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const requests = held;
    held = [];
    for (const request of requests) attempt(request);
  }

  return {
    call(name, given) {
      if (lead !== null) return lead.call(name, given);
      // Anyone who asks this wants to know it now.
      if (name === 'checkReadiness' && client?.isLinked() !== true) return UNAVAILABLE;
      return ask(name, given);
    },
    relay(rows, outbox) {
      if (lead !== null) return false;
      const deadline = elapsed() + holdMs;
      for (let start = 0; start < rows.length; start += HEARTBEAT_ROW) {
        relayOne(rows, start, deadline, outbox);
      }
      return true;
    },
    limits: {
      isOn: asked.isOn,
      take: (bucket, key, now) => limits().take(bucket, key, now),
      wait: (bucket, key, now) => limits().wait(bucket, key, now),
      giveBack: (bucket, key, counted) => limits().giveBack(bucket, key, counted),
    },
    lead(call, limits) {
      lead = { call, limits };
      resume();
    },
    resume,
  };
}

function hasNotBegun(answer: Answer): boolean {
  return !answer.ok && NOT_BEGUN.has(answer.refusal);
}

/** Questions of rate limits, which are no calls, change next to nothing. */
function mayBeAskedAgain(name: string): boolean {
  return name.startsWith('#') || isRepeatable(name as CallName);
}

/** Of one heartbeat, which costs more to make than to send its row: only those that are not answered need it. */
function requestOf(rows: Rows, start: number, deadline: number, outbox: Outbox): Request {
  const id = rows[start];
  return {
    name: 'heartbeat',
    question: unpackHeartbeat(rows, start),
    deadline,
    resolve: (answer) => reply(outbox, id, answer),
    reject: (cause) => outbox.fail(id, cause),
  };
}

/** A bug in one command fails that request, and none of those that are held with it. */
function answerHere(lead: Lead, { name, question, resolve, reject }: Request): void {
  try {
    resolve(answerOf(lead, name, question));
  } catch (cause) {
    reject(cause);
  }
}

function answerOf(
  { call, limits }: Lead,
  name: string,
  question: unknown,
): Answer | Promise<Answer> {
  return (
    answerLimit(limits, name, question) ?? call(name as CallName, question as CallOf<CallName>)
  );
}
