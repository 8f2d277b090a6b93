/** The edges, as seen by the authority: threads that share the port. */

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { EdgeConfig } from '../../edge/edge-config.ts';
import type { CopyNotice } from '../../edge/forward/copies.ts';
import type { LocalRateLimits } from '../../edge/limits/rate-limit.ts';
import type { RequestQueue } from '../../edge/limits/request-queue.ts';
import type { MetricsReport } from '../../edge/metrics.ts';
import {
  type Call,
  type CallName,
  type CallOf,
  isQuestion,
} from '../../protocol/contract/calls.ts';
import type { DocumentPublisher } from '../../protocol/contract/documents.ts';
import {
  type AuthorityProcedures,
  crossing,
  type EdgeProcedures,
  fromCloneable,
  heartbeatIn,
  type Service,
  type SharedState,
} from './crossing.ts';
import { createPeer, endOf, type Peer, startWorker } from './rpc.ts';

/** A thread that can serve, and can serve again after being closed. */
export interface EdgeThread {
  /** Begins to talk with the thread, for which the authority does this. */
  connect(authority: Omit<AuthorityProcedures, 'failed'>): Peer<EdgeProcedures>;
  /** Ends the thread, whose server must be closed; resolves when it has ended. */
  end(): Promise<void>;
}

export function startEdgeThread(onFailure: (cause: unknown) => void): EdgeThread {
  return edgeThreadOn(startWorker('edge'), onFailure);
}

/** The authority's interface to the thread. */
export function edgeThreadOn(worker: Worker, onFailure: (cause: unknown) => void): EdgeThread {
  const ended = endOf(worker, onFailure);
  let edge: Peer<EdgeProcedures> | null = null;
  return {
    connect(authority) {
      edge = createPeer(worker, { ...authority, failed: onFailure }, { gathers: true });
      return edge;
    },
    end() {
      edge?.notify('exit');
      return ended.expected();
    },
  };
}

export interface EdgeHost {
  readonly call: Call;
  /** The queue of the authority's thread. */
  readonly queue: RequestQueue;
  readonly publisher: DocumentPublisher;
  readonly limits: LocalRateLimits;
  readonly shared: SharedState;
  /** The folder of the sockets at which edges take what other instances forward; null if they forward nothing. */
  readonly socketFolder: string | null;
  /** Notes a document that the active instance has answered with. */
  copied(copy: CopyNotice): void;
  log(lines: string): void;
  /** The metrics of all edges. */
  exposition(reports: readonly MetricsReport[]): Promise<string>;
}

/** All edges of one authority, on whichever threads they run. What each of them does is in `EdgeProcedures`. */
export interface Edges
  extends Pick<
    EdgeProcedures,
    'drain' | 'useTls' | 'useSessionSecret' | 'barrier' | 'forwardTo' | 'keepCopy'
  > {
  announce(): void | Promise<void>;
  cut(): void | Promise<void>;
  /** Ends all connections, and the threads if there are any. */
  close(): void | Promise<void>;
  /** Stops answering and closes, without waiting longer than the time limit. */
  abandon(): void | Promise<void>;
  /** Resolves when everything that the edges have logged and counted so far has arrived. */
  settle(): Promise<void>;
  /** The metrics of each edge so far. */
  reports(): Promise<readonly MetricsReport[]>;
}

/** How long to wait for threads to close, in milliseconds. */
const CLOSING_MS = 2000;

/** Resolves when every thread listens on the port. */
export async function serveOnThreads(
  threads: readonly EdgeThread[],
  host: EdgeHost,
  config: EdgeConfig,
  port: number,
): Promise<Edges> {
  const edges = threads.map((thread) => connect(thread, host, reports));
  async function reports(): Promise<MetricsReport[]> {
    return Promise.all(edges.map((edge) => edge.call('report')));
  }
  async function onAll(name: 'announce' | 'drain' | 'cut' | 'close' | 'barrier'): Promise<void> {
    await Promise.all(edges.map((edge) => edge.call(name)));
  }
  async function close(): Promise<void> {
    const ended = onAll('close').then(() => Promise.all(edges.map(({ end }) => end())));
    // A thread that does not close must not delay the end of the process.
    await Promise.race([ended, delay(CLOSING_MS, undefined, { ref: false })]);
  }

  await serveAll(edges, (slot) => ({
    config,
    port,
    slot,
    socketPath: socketIn(host, slot),
    shared: host.shared,
  })).catch(async (cause) => {
    await Promise.race([onAll('close'), delay(CLOSING_MS, undefined, { ref: false })]);
    throw cause;
  });

  return {
    close,
    announce: () => onAll('announce'),
    drain: () => onAll('drain'),
    cut: () => onAll('cut'),
    async abandon() {
      for (const { silence } of edges) silence();
      await close();
    },
    reports,
    async useTls(files) {
      await Promise.all(edges.map((edge) => edge.call('useTls', files)));
    },
    useSessionSecret(secret) {
      for (const edge of edges) edge.notify('useSessionSecret', secret);
    },
    settle: async () => void (await reports()),
    forwardTo(active) {
      for (const edge of edges) edge.notify('forwardTo', active);
    },
    keepCopy(copy) {
      for (const edge of edges) edge.notify('keepCopy', copy);
    },
    async barrier() {
      // Publications are sent at the end of this turn, and edges process messages in order.
      await new Promise(setImmediate);
      await onAll('barrier');
    },
  };
}

/** Resolves when all serve; rejects when each has begun or failed, if any has failed. */
async function serveAll(
  edges: readonly ConnectedEdge[],
  serviceOf: (slot: number) => Service,
): Promise<void> {
  const starts = edges.map((edge, index) => edge.serve(serviceOf(index + 1)));
  await Promise.allSettled(starts);
  await Promise.all(starts);
}

/** The socket of the edge in this slot. */
export function socketIn({ socketFolder }: Pick<EdgeHost, 'socketFolder'>, slot: number) {
  return socketFolder && join(socketFolder, String(slot));
}

interface ConnectedEdge extends Peer<EdgeProcedures> {
  serve(service: Service): Promise<void>;
  end(): Promise<void>;
}

function connect(
  thread: EdgeThread,
  host: EdgeHost,
  reports: () => Promise<MetricsReport[]>,
): ConnectedEdge {
  const { call, queue, limits, copied, log, publisher } = host;
  let isSilent = false;
  const edge = thread.connect({
    heartbeat: (...row) => crossing(call('heartbeat', heartbeatIn(...row))),
    ask(name, command) {
      const ask = () => crossing(call(name, fromCloneable(command) as CallOf<CallName>));
      // Few wait here, because an edge begins few at once.
      return isQuestion(name, command as CallOf<CallName>) && !queue.isFree('public')
        ? inTurn(queue, ask)
        : ask();
    },
    takeToken: limits.take,
    exposition: () => reports().then(host.exposition),
    copied,
    log,
  });
  function silence(): void {
    isSilent = true;
    edge.silence();
  }

  return {
    ...edge,
    serve(service) {
      const started = edge.call('serve', service);
      // In the same message, so that no request comes before the documents that there are.
      publisher.follow((publication) => {
        if (!isSilent) edge.notify('publish', publication);
      });
      return started;
    },
    silence,
    end() {
      silence();
      return thread.end();
    },
  };
}

/** Resolves with the result of `ask`, whose turn comes when the queue says so. */
function inTurn<Result>(queue: RequestQueue, ask: () => Result | Promise<Result>) {
  const turn = new Promise<void>((resolve) => {
    queue.wait('public', { run: resolve, shed: null, bytes: 0 });
  });
  return turn.then(ask);
}
