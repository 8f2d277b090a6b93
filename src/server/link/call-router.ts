/**
 * Routes the calls of an instance's edges to the current writer: the authority in this process, or another instance
 * over the link. While there is no writer, calls are held for a while, so that clients see a pause rather than an error
 * when another instance takes over.
 */

import type {
  LocalRateLimits,
  RateLimitSettings,
  RateLimits,
} from '../../edge/limits/rate-limit.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import {
  type Call,
  type CallName,
  type CallOf,
  isRepeatable,
  OUTCOME_UNKNOWN,
  UNAVAILABLE,
} from '../../protocol/contract/calls.ts';
import type { RefusalName } from '../../protocol/refusals.ts';
import { type Outbox, type Relay, type Rows, reply } from '../threads/answers.ts';
import { answerLimit, askedLimits } from '../threads/limit-questions.ts';
import { HEARTBEAT_ROW, unpackHeartbeat } from '../threads/packed-heartbeat.ts';
import type { LinkClient, Outcome } from './client.ts';

export interface CallRouterOptions {
  /** Null if instances are not linked. */
  readonly client: LinkClient | null;
  /** How long a request is held while there is no writer, milliseconds. */
  readonly holdMs: number;
  readonly rateLimits: RateLimitSettings;
  elapsed(): number;
}

export interface CallRouter {
  readonly call: Call;
  /**
   * Forwards packed heartbeats of a thread and puts their answers into its outbox; false if this process must answer
   * them itself.
   */
  readonly relay: Relay;
  readonly limits: RateLimits;
  /** Call when this process becomes the writer. */
  lead(lead: Lead): void;
  /** Sends the held requests; call when requests can be sent again. */
  resume(): void;
}

/** While there is no writer, at most this many requests are held; further ones are refused at once. */
const MOST_HELD = 4096;
/** How often held requests are retried. */
const RETRY_MS = 50;

/** Refusals that are given before any work begins. */
const NOT_BEGUN: ReadonlySet<RefusalName> = new Set(['authority_unavailable', 'shutting_down']);

/** The authority in this process, while it is the writer. */
export interface Lead {
  readonly call: Call;
  readonly limits: LocalRateLimits;
  /** False while the lease has run out and no renewal is known. */
  isHeld(): boolean;
}

interface Request {
  readonly name: string;
  readonly question: unknown;
  /** When the request is refused if no writer has been found, in monotonic milliseconds. */
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
      if (lead.isHeld()) answerHere(lead, request);
      else hold(request);
      return;
    }
    const isSent = client?.send(name, question, (outcome) => settle(request, outcome)) === true;
    if (!isSent) hold(request);
  }

  function settle(request: Request, outcome: Outcome): void {
    if (outcome.kind === 'failed') {
      request.reject(new Error(outcome.problem));
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
      if (lead?.isHeld() === true) return lead.call(name, given);
      // Readiness must be answered now, not held.
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
    },
    lead(given) {
      lead = given;
      resume();
    },
    resume,
  };
}

function hasNotBegun(answer: Answer): boolean {
  return !answer.ok && NOT_BEGUN.has(answer.refusal);
}

/** Rate limit questions (`#…`) are not calls and change almost nothing. */
function mayBeAskedAgain(name: string): boolean {
  return name.startsWith('#') || isRepeatable(name as CallName);
}

/**
 * Builds the request of one heartbeat. That costs more than sending the packed row, so it is done only for heartbeats
 * that were not answered.
 */
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

/** A bug in one command must fail only that request and not those that were held together with it. */
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
