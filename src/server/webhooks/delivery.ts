/**
 * Posts the audit log to one webhook, in order, from where delivery stopped last [events-5]. Events that the webhook
 * does not accept are retried until it does; only the events after them wait.
 */

import type { WebhookFacts } from '../../authority/views/posture.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { Problem } from './post.ts';

export interface DeliveryOptions {
  readonly host: string;
  /** The index of the last delivered event. */
  readonly delivered: number;
  /** The events after an index, one per line; waits for the next if there are none, and may still return none. */
  read(after: number): Promise<readonly string[]>;
  post(body: string): Promise<Problem>;
  /** Milliseconds since the epoch. */
  now(): number;
  /** At least 0, and less than 1. */
  random(): number;
  /** Rejects when the signal is aborted. */
  pause(milliseconds: number): Promise<void>;
  /** Called with the number of events that were accepted. */
  took(events: number): void;
  failed(problem: string, isFirst: boolean): void;
  /** Called when the webhook accepts events again after this many failures. */
  recovered(failures: number): void;
  readonly abort: AbortSignal;
}

export interface Delivery {
  readonly facts: WebhookFacts;
  /** Posts until the signal is aborted; if it is waiting for the next event, it may not return. */
  run(): Promise<void>;
}

/** The pause between two requests, so that a long log takes only a small part of the thread's time. */
const PACE_MS = 50;
const FIRST_RETRY_MS = 2000;
const LONGEST_RETRY_MS = 300_000;

export function createDelivery(options: DeliveryOptions): Delivery {
  const { host, now, random, pause, abort } = options;
  let { delivered } = options;
  let failures = 0;
  let failingSince: number | null = null;
  let waitingSince: number | null = null;

  /** Resolves to the time until the next request. */
  async function postNext(): Promise<number> {
    const lines = await options.read(delivered);
    const [oldest] = lines;
    if (oldest === undefined || abort.aborted) return FIRST_RETRY_MS;
    waitingSince = loggedAt(oldest);
    const problem = await options.post(`${lines.join('\n')}\n`);
    return problem === null ? taken(lines.length) : notTaken(problem);
  }

  function taken(events: number): number {
    delivered += events;
    waitingSince = null;
    options.took(events);
    if (failures > 0) options.recovered(failures);
    failures = 0;
    failingSince = null;
    return PACE_MS;
  }

  /** Jitter, so that endpoints that failed together are not retried together. */
  function notTaken(problem: string): number {
    const ms = Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
    if (abort.aborted) return ms;
    options.failed(problem, failures === 0);
    failures += 1;
    failingSince ??= now();
    return ms * (0.5 + random() / 2);
  }

  return {
    get facts() {
      return { host, delivered, failingSince, waitingSince };
    },
    async run() {
      while (!abort.aborted) {
        const wait = await postNext().catch(() => notTaken('the audit log cannot be read'));
        await pause(wait).catch(() => undefined);
      }
    },
  };
}

function loggedAt(line: string): number {
  const { entry } = JSON.parse(line) as { readonly entry: { readonly created_at: string } };
  return instantOf(entry.created_at);
}
