/** All webhooks of an authority. They read the stored log, and the authority never waits for them [events-5]. */

import { setTimeout } from 'node:timers/promises';
import type { WebhookFacts } from '../../authority/host-status.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { Runtime } from '../../base/runtime.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { Answer, Call } from '../../protocol/contract/calls.ts';
import type { WebhookCursors } from '../../protocol/contract/inputs.ts';
import { instantOf } from '../../protocol/records/record.ts';
import { singleKeyOf } from '../../protocol/records/signed-record.ts';
import { WEBHOOK_PROOF_HEADER, webhookProof } from '../../protocol/records/webhook-proof.ts';
import { isSignerUnavailable } from '../../protocol/refusals.ts';
import type { AuthorityMetrics } from '../metrics/authority.ts';
import { createStrangerClient, type StrangerClient } from '../outbound/client.ts';
import { createLookup } from '../outbound/lookup.ts';
import { type WebhookSettings, webhookReach } from './settings.ts';

export type Webhooks = Awaited<ReturnType<typeof openWebhooks>>;

/** Starts posting. The state forgets webhooks that are not among these. */
export async function openWebhooks(settings: WebhookSettings, tools: DeliveryTools) {
  const { call, logger } = tools;
  const stopped = new AbortController();
  const hooks = settings.urls.map((url) => ({ url, id: sha256Hex(url.href) }));
  const ids = hooks.map(({ id }) => id);
  const opened = await call('openWebhooks', { ids, after: settings.after });
  const saved = new Map(Object.entries(JSON.parse(textOf(opened)) as WebhookCursors));
  const lookup = createLookup(webhookReach(settings.allowsPrivate));
  const running = hooks.map(({ url, id }) => {
    const delivered = saved.get(id) ?? 0;
    logger.write('INFO', 'webhook', `Posting events after ${delivered} to ${url.host}`);
    const client = createStrangerClient({ lookup });
    const place = { url, delivered, client, abort: stopped.signal };
    const delivery = createDelivery(place, tools);
    void delivery.run();
    return { id, client, delivery };
  });

  /** Stores the delivery positions that changed since the last call. */
  async function save(): Promise<void> {
    const taken = running
      .map(({ id, delivery }) => [id, delivery.facts.delivered] as const)
      .filter(([id, delivered]) => delivered !== saved.get(id));
    if (taken.length === 0) return;
    textOf(await call('saveWebhooks', Object.fromEntries(taken)));
    for (const [id, delivered] of taken) saved.set(id, delivered);
  }

  return {
    get facts(): readonly WebhookFacts[] {
      return running.map(({ delivery }) => delivery.facts);
    },
    save,
    /** Stops posting and stores the delivery positions. */
    async stop(): Promise<void> {
      stopped.abort();
      for (const { client } of running) client.close();
      await save();
    },
  };
}

function textOf(answer: Answer): string {
  if (answer.ok) return answer.json;
  throw new Error(`The authority refused: ${answer.refusal}`);
}

/** What all deliveries use. */
interface DeliveryTools {
  readonly call: Call;
  readonly signer: RecordSigner;
  readonly runtime: Runtime;
  readonly logger: Logger;
  readonly metrics: Pick<AuthorityMetrics, 'webhookTook' | 'webhookFailed'>;
}

interface DeliveryOptions {
  readonly url: URL;
  /** The index of the last delivered event. */
  readonly delivered: number;
  readonly client: StrangerClient;
  readonly abort: AbortSignal;
}

/** The pause between two requests, so that a long log takes only a small part of the thread's time. */
const PACE_MS = 50;
const FIRST_RETRY_MS = 2000;
const LONGEST_RETRY_MS = 300_000;
/** The most events in one request. */
const MOST_EVENTS = 100;

/**
 * Posts the audit log to one webhook, in order, from where delivery stopped last [events-5]. Events that the webhook
 * does not accept are retried until it does; only the events after them wait.
 */
function createDelivery({ url, client, abort, ...start }: DeliveryOptions, tools: DeliveryTools) {
  const { call, runtime, logger, metrics } = tools;
  const { host } = url;
  let { delivered } = start;
  let failures = 0;
  /** By the monotonic clock, because the wall clock may be set meanwhile. */
  let failingFrom: number | null = null;
  let waitingSince: number | null = null;

  /** Waits for the next events and posts them; resolves to the time until the next request. */
  async function postNext(): Promise<number> {
    const lines = await eventsAfter(delivered, call);
    const [oldest] = lines;
    if (oldest === undefined || abort.aborted) return FIRST_RETRY_MS;
    waitingSince = loggedAt(oldest);
    const problem = await post(`${lines.join('\n')}\n`, { url, client, abort }, tools);
    return problem === null ? taken(lines.length) : notTaken(problem);
  }

  function taken(events: number): number {
    delivered += events;
    waitingSince = null;
    metrics.webhookTook(host, events);
    if (failures > 0)
      logger.write('INFO', 'webhook', `${host} accepts events again after ${failures} failures`);
    failures = 0;
    failingFrom = null;
    return PACE_MS;
  }

  function notTaken(problem: string): number {
    const wait = retryMs(failures, runtime);
    if (abort.aborted) return wait;
    metrics.webhookFailed(host);
    if (failures === 0) {
      const what = `Events cannot be posted to ${host}: ${problem}; they are kept and retried`;
      logger.write('WARNING', 'webhook', what);
    }
    failures += 1;
    failingFrom ??= runtime.elapsed();
    return wait;
  }

  return {
    get facts(): WebhookFacts {
      const failingFor = failingFrom === null ? null : runtime.elapsed() - failingFrom;
      const failingSince = failingFor === null ? null : runtime.now() - failingFor;
      return { host, delivered, failingSince, waitingSince };
    },
    /** Posts until the signal is aborted; if it is waiting for the next event, it may not return. */
    async run(): Promise<void> {
      while (!abort.aborted) {
        const wait = await postNext().catch(() => notTaken('the audit log cannot be read'));
        await setTimeout(wait, undefined, { signal: abort }).catch(() => undefined);
      }
    },
  };
}

/** One per line. Waits if there are none, and may still return none. */
async function eventsAfter(after: number, call: Call): Promise<readonly string[]> {
  const answer = await call('readEvents', { after, most: MOST_EVENTS, waits: true });
  return answer.ok && answer.json !== '' ? answer.json.split('\n') : [];
}

async function post(
  body: string,
  { url, client, abort }: Pick<DeliveryOptions, 'url' | 'client' | 'abort'>,
  { signer, runtime }: DeliveryTools,
): Promise<string | null> {
  const timestamp = formatInstant(runtime.now());
  try {
    const proof = webhookProof(sha256Hex(body), timestamp, singleKeyOf(signer));
    const headers = {
      'Content-Type': 'application/x-ndjson; charset=utf-8',
      'User-Agent': 'mesh-na',
      [WEBHOOK_PROOF_HEADER]: proof,
    };
    return (await client.exchange({ url, body, headers, abort })).problem;
  } catch (cause) {
    if (isSignerUnavailable(cause)) return 'the signer is unavailable';
    throw cause;
  }
}

/** Jitter, so that endpoints that failed together are not retried together. */
function retryMs(failures: number, runtime: Runtime): number {
  const random = runtime.randomBytes(4).readUInt32LE() / 2 ** 32;
  return Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS) * (0.5 + random / 2);
}

function loggedAt(line: string): number {
  const { entry } = JSON.parse(line) as { readonly entry: { readonly created_at: string } };
  return instantOf(entry.created_at);
}
