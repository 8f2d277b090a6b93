/** A receiver of webhooks as described in the contract: it checks each request, and accepts every event once. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { LoggedEvent } from '../../src/client/events.ts';
import { readWebhook, WEBHOOK_PROOF_HEADER } from '../../src/client/webhook.ts';

export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string;
  readonly host: string;
  /** The events in order, each one once. */
  readonly events: readonly LoggedEvent[];
  /** The reasons why requests were refused; an honest authority causes none. */
  readonly refused: readonly string[];
  /** The number of requests so far, and of the events in them, including repeated ones. */
  readonly requests: number;
  readonly posted: number;
  /** Handles requests instead of the receiver; null to accept them normally. */
  behavior: ((request: IncomingMessage, answer: ServerResponse) => void) | null;
  /** Resolves when the receiver has accepted the event with this index. */
  until(index: number): Promise<void>;
}

export interface ReceiverOptions {
  readonly authorityKey: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** PEM; plain HTTP without it. */
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
}

const PATIENCE_MS = 60_000;

export async function startReceiver(options: ReceiverOptions): Promise<WebhookReceiver> {
  const events: LoggedEvent[] = [];
  const refused: string[] = [];
  let requests = 0;
  let posted = 0;
  let wake = () => {};

  async function take(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const proof = request.headers[WEBHOOK_PROOF_HEADER.toLowerCase()];
    const verdict = readWebhook({ proof, body }, { ...options, after: events.at(-1) ?? null });
    posted += body.toString().split('\n').length - 1;
    if (verdict.valid) events.push(...verdict.events);
    else refused.push(verdict.reason);
    answer.writeHead(verdict.valid ? 204 : 400).end();
    wake();
  }

  function serve(request: IncomingMessage, answer: ServerResponse): void {
    requests += 1;
    wake();
    if (receiver.behavior !== null) receiver.behavior(request, answer);
    else take(request, answer).catch(() => answer.destroy());
  }

  const { tls } = options;
  const server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const receiver: WebhookReceiver = {
    url: `${tls === undefined ? 'http' : 'https'}://${host}/in?token=not-for-logs`,
    host,
    events,
    refused,
    behavior: null,
    get requests() {
      return requests;
    },
    get posted() {
      return posted;
    },
    async until(index) {
      const deadline = AbortSignal.timeout(PATIENCE_MS);
      deadline.addEventListener('abort', () => wake(), { once: true });
      while ((events.at(-1)?.index ?? 0) < index) {
        assert.ok(!deadline.aborted, `Event ${index} has not come: ${events.length}, ${refused}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}
