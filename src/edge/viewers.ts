/** The WebSockets of live-page viewers, on every app of an edge. They are write-only. */
import type { HttpRequest, HttpResponse, TemplatedApp, us_socket_context_t } from 'uWebSockets.js';
import type { RefusalName } from '../base/refusal.ts';
import { LIVE_TOPICS, type LiveTopic } from '../pages/live-content.ts';
import type { Edge } from './edge.ts';
import type { Exchange } from './exchange.ts';
import {
  createLivePages,
  isLiveTopic,
  LIVE_FORMS,
  LIVE_PATH,
  type LiveForm,
} from './live-pages.ts';
import { noteOutcome, refusedExchange } from './pipeline.ts';
import { orCut, writeReply } from './response.ts';
import { utf8 } from './utf8.ts';

/** A viewer that is this many bytes behind is dropped, never waited for. */
const MAX_BACKPRESSURE = 256 * 1024;
const IDLE_SECONDS = 60;
/** How often viewers get a message even without changes, so that silence indicates a failure. */
const ALIVE_MS = 10_000;
const ALIVE_TOPIC = 'alive';
const ALIVE = '{"alive":true}';

interface Viewer {
  readonly topic: LiveTopic;
  readonly form: LiveForm;
  isGone: boolean;
}

export interface ViewersOptions {
  openExchange(res: HttpResponse, req: HttpRequest): Exchange;
  /** Called when a connection is upgraded from HTTP. */
  leftHttp(): void;
}

export interface Viewers {
  /** Serves viewers on this app too; `ended` is called when a viewer's connection has ended. */
  serveOn(app: TemplatedApp, ended: () => void): void;
  /** Call when the app has no connections left. */
  leave(app: TemplatedApp): void;
  end(): void;
}

export function createViewers(edge: Edge, { openExchange, leftHttp }: ViewersOptions): Viewers {
  const channels = LIVE_TOPICS.flatMap((topic) => LIVE_FORMS.map((form) => channelOf(topic, form)));
  const counts = new Map(channels.map((channel) => [channel, 0]));
  const apps = new Set<TemplatedApp>();
  const pages = createLivePages(
    edge.documents,
    (topic, document) => edge.liveRenderers[topic](edge, document),
    (topic, form) => (counts.get(channelOf(topic, form)) ?? 0) > 0,
  );
  pages.onChange((topic, form, message) => publish(channelOf(topic, form), message));

  function publish(channel: string, message: string): void {
    for (const app of apps) app.publish(channel, utf8(message));
  }

  function count({ topic, form }: Viewer, difference: 1 | -1): void {
    const channel = channelOf(topic, form);
    counts.set(channel, (counts.get(channel) ?? 0) + difference);
    Atomics.add(edge.viewers, 0, difference);
  }

  const ticking = setInterval(() => publish(ALIVE_TOPIC, ALIVE), ALIVE_MS);
  return {
    serveOn(app, ended) {
      apps.add(app);
      app.ws<Viewer>(LIVE_PATH, {
        maxPayloadLength: 1024,
        maxBackpressure: MAX_BACKPRESSURE,
        closeOnBackpressureLimit: 1,
        idleTimeout: IDLE_SECONDS,
        upgrade: orCut((res, req: HttpRequest, context: us_socket_context_t) =>
          upgrade(res, req, context, edge, openExchange(res, req)),
        ),
        open(ws) {
          leftHttp();
          const viewer = ws.getUserData();
          count(viewer, 1);
          ws.subscribe(ALIVE_TOPIC);
          // However many viewers connect at once, each gets its first message in a slice.
          void edge.queue.turn().then(() => {
            if (viewer.isGone) return;
            pages.first(viewer.topic, viewer.form, (message) => {
              if (viewer.isGone) return;
              ws.subscribe(channelOf(viewer.topic, viewer.form));
              if (message !== null) ws.send(utf8(message));
            });
          });
        },
        close(ws) {
          const viewer = ws.getUserData();
          viewer.isGone = true;
          count(viewer, -1);
          ended();
        },
      });
    },
    leave: (app) => void apps.delete(app),
    end: () => clearInterval(ticking),
  };
}

function channelOf(topic: LiveTopic, form: LiveForm): string {
  return `${topic} ${form}`;
}

/** Answers an upgrade request synchronously. */
function upgrade(
  res: HttpResponse,
  req: HttpRequest,
  context: us_socket_context_t,
  edge: Edge,
  exchange: Exchange,
): void {
  const topic = req.getQuery('topic') ?? '';
  const form = req.getQuery('form') === 'patches' ? 'patches' : 'whole';
  const refusal = refusalOf(topic, req, exchange);
  if (refusal === null && isLiveTopic(topic)) {
    noteOutcome(edge, exchange, 101);
    res.upgrade<Viewer>(
      { topic, form, isGone: false },
      req.getHeader('sec-websocket-key'),
      req.getHeader('sec-websocket-protocol'),
      req.getHeader('sec-websocket-extensions'),
      context,
    );
  } else {
    const reply = refusedExchange(edge, exchange, refusal ?? 'unknown_live_topic');
    res.cork(() => writeReply(res, exchange.method, reply, String(reply.body), 'asked'));
  }
}

function refusalOf(topic: string, req: HttpRequest, exchange: Exchange): RefusalName | null {
  if (!isLiveTopic(topic)) return 'unknown_live_topic';
  if (exchange.isRefused) return 'shutting_down';
  return isOfThisSite(req, exchange) ? null : 'foreign_origin';
}

/**
 * Prevents pages of other sites from opening sockets here, by the `Origin` that browsers send. It is compared with the
 * base URL, because a proxy may have rewritten the host.
 */
function isOfThisSite(req: HttpRequest, { baseUrl }: Exchange): boolean {
  const origin = req.getHeader('origin');
  if (origin === '') return true;
  const host = /^https?:\/\/(.+)$/.exec(origin)?.[1];
  const own = URL.canParse(baseUrl) ? new URL(baseUrl).host : null;
  return host === own || host === req.getHeader('host');
}
