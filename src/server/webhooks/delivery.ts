/**
 * Posts the audit log to one webhook, event after event, from where it stands [events-5]. What it does not take is
 * posted again until it does: nothing is left out, and nothing waits for it but what follows.
 */

import type { WebhookFacts } from '../../authority/views/posture.ts';
import { instantOf } from '../../protocol/records/record.ts';
import type { Problem } from './post.ts';

export interface DeliveryOptions {
  readonly host: string;
  /** The index of the last event that it took. */
  readonly delivered: number;
  /** The events after an index, each a line; waits for the next when there are none, and may answer none. */
  read(after: number): Promise<readonly string[]>;
  post(body: string): Promise<Problem>;
  /** Milliseconds since the epoch. */
  now(): number;
  /** At least 0, and less than 1. */
  random(): number;
  /** Rejects when the signal is aborted. */
  pause(milliseconds: number): Promise<void>;
  /** This many events were taken. */
  took(events: number): void;
  failed(problem: string, isFirst: boolean): void;
  /** It takes events again, after this many failures. */
  recovered(failures: number): void;
  readonly abort: AbortSignal;
}

export interface Delivery {
  readonly facts: WebhookFacts;
  /** Posts until the signal is aborted; while it waits for the next event, it may stay so for ever. */
  run(): Promise<void>;
}

/** Between two requests, so that a long log takes a small part of the thread's time. */
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

  /** Endpoints that failed together are not tried again together. */
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
