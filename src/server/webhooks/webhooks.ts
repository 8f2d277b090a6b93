/** All webhooks of an authority. They read the stored log, and the authority never waits for them [events-5]. */
import { setTimeout } from 'node:timers/promises';
import type { WebhookFacts } from '../../authority/views/posture.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { RecordSigner } from '../../base/crypto/primitives.ts';
import type { Logger } from '../../base/log/logger.ts';
import { isSignerUnavailable } from '../../base/refusal.ts';
import type { Runtime } from '../../base/runtime.ts';
import { formatInstant } from '../../base/timestamp.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { Call } from '../../protocol/contract/calls.ts';
import type { WebhookCursors } from '../../protocol/contract/inputs.ts';
import { singleKeyOf } from '../../protocol/records/signed-record.ts';
import { WEBHOOK_PROOF_HEADER, webhookProof } from '../../protocol/records/webhook-proof.ts';
import { createDelivery, type Delivery } from './delivery.ts';
import { createLookup } from './lookup.ts';
import { createPoster, type Poster } from './post.ts';
import type { WebhookSettings } from './settings.ts';

export interface WebhookOptions {
  readonly settings: WebhookSettings;
  readonly call: Call;
  readonly signer: RecordSigner;
  readonly runtime: Runtime;
  readonly logger: Logger;
  took(host: string, events: number): void;
  failed(host: string): void;
}

export interface Webhooks {
  readonly facts: readonly WebhookFacts[];
  /** Stores the delivery positions that changed since the last call. */
  save(): Promise<void>;
  /** Stops posting and stores the delivery positions. */
  stop(): Promise<void>;
}

/** The most events in one request. */
const MOST_EVENTS = 100;

/** Starts posting. The state forgets webhooks that are not among these. */
export async function openWebhooks(options: WebhookOptions): Promise<Webhooks> {
  const { settings, call, logger } = options;
  const stopped = new AbortController();
  const hooks = settings.urls.map((url) => ({ url, id: sha256Hex(url.href) }));
  const ids = hooks.map(({ id }) => id);
  const opened = await call('openWebhooks', { ids, after: settings.after });
  const saved = new Map(Object.entries(JSON.parse(textOf(opened)) as WebhookCursors));
  const lookup = createLookup(settings.allowsPrivate);
  const running = hooks.map(({ url, id }) => {
    const delivered = saved.get(id) ?? 0;
    logger.write('INFO', 'webhook', `Posting events after ${delivered} to ${url.host}`);
    const poster = createPoster({ url, lookup });
    const delivery = deliveryTo(url.host, delivered, poster, stopped.signal, options);
    void delivery.run();
    return { id, poster, delivery };
  });

  async function save(): Promise<void> {
    const taken = running
      .map(({ id, delivery }) => [id, delivery.facts.delivered] as const)
      .filter(([id, delivered]) => delivered !== saved.get(id));
    if (taken.length === 0) return;
    textOf(await call('saveWebhooks', Object.fromEntries(taken)));
    for (const [id, delivered] of taken) saved.set(id, delivered);
  }

  return {
    get facts() {
      return running.map(({ delivery }) => delivery.facts);
    },
    save,
    async stop() {
      stopped.abort();
      for (const { poster } of running) poster.close();
      await save();
    },
  };
}

function deliveryTo(
  host: string,
  delivered: number,
  poster: Poster,
  abort: AbortSignal,
  { call, signer, runtime, logger, took, failed }: WebhookOptions,
): Delivery {
  return createDelivery({
    host,
    delivered,
    read: (after) => eventsAfter(call, after),
    async post(body) {
      const timestamp = formatInstant(runtime.now());
      try {
        const proof = webhookProof(sha256Hex(body), timestamp, singleKeyOf(signer));
        const headers = {
          'Content-Type': 'application/x-ndjson; charset=utf-8',
          'User-Agent': 'mesh-na',
          [WEBHOOK_PROOF_HEADER]: proof,
        };
        return await poster.post(body, headers, abort);
      } catch (cause) {
        if (isSignerUnavailable(cause)) return 'the signer is unavailable';
        throw cause;
      }
    },
    now: runtime.now,
    random: () => runtime.randomBytes(4).readUInt32LE() / 2 ** 32,
    pause: (milliseconds) => setTimeout(milliseconds, undefined, { signal: abort }),
    took: (events) => took(host, events),
    failed(problem, isFirst) {
      failed(host);
      if (!isFirst) return;
      const what = `Events cannot be posted to ${host}: ${problem}; they are kept and retried`;
      logger.write('WARNING', 'webhook', what);
    },
    recovered: (failures) =>
      logger.write('INFO', 'webhook', `${host} accepts events again after ${failures} failures`),
    abort,
  });
}

async function eventsAfter(call: Call, after: number): Promise<readonly string[]> {
  const answer = await call('readEvents', { after, most: MOST_EVENTS, waits: true });
  if (!answer.ok || answer.json === '') return [];
  return answer.json.split('\n');
}

function textOf(answer: Answer): string {
  if (answer.ok) return answer.json;
  throw new Error(`The authority refused: ${answer.refusal}`);
}
