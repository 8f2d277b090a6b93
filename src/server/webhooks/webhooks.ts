/** All webhooks of an authority. They read the stored log, and the authority never waits for them [events-5]. */
import type { WebhookFacts } from '../../authority/host-status.ts';
import { sha256Hex } from '../../base/crypto/digest.ts';
import type { Answer } from '../../protocol/contract/answers.ts';
import type { WebhookCursors } from '../../protocol/contract/inputs.ts';
import { createStrangerClient } from '../outbound/client.ts';
import { createLookup } from '../outbound/lookup.ts';
import { createDelivery, type DeliveryTools } from './delivery.ts';
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
