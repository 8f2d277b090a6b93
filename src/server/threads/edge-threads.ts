/** The edges, as seen by the authority: threads that share the port and send commands in batches. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import type { ClockAnchor } from '../../base/clock.ts';
import type { ManualTime } from '../../base/runtime.ts';
import type { EdgeConfig } from '../../edge/edge-config.ts';
import type { Copy } from '../../edge/forward/copies.ts';
import type { LocalRateLimits } from '../../edge/limits/rate-limit.ts';
import type { RequestQueue } from '../../edge/limits/request-queue.ts';
import type { MetricsReport } from '../../edge/metrics.ts';
import type { Call } from '../../protocol/contract/calls.ts';
import type { InstanceStatusMemory } from '../../protocol/contract/instance-status.ts';
import type { DocumentPublisher } from '../../protocol/contract/publications.ts';
import { carryOut, createOutbox } from './answers.ts';
import type { Beats } from './beats.ts';
import type { EdgeProcedures, FromEdge, SharedState, ToEdge } from './messages.ts';
import { createRpcCaller, type RpcCaller } from './rpc.ts';
import { endOf, startWorker } from './worker-thread.ts';

/** A thread that can serve, and can serve again after being closed. */
export interface EdgeThread {
  post(message: ToEdge): void;
  listen(listener: (message: FromEdge) => void): void;
  /** Ends the thread, whose server must be closed; resolves when it has ended. */
  end(): Promise<void>;
}

export function startEdgeThread(onFailure: (cause: unknown) => void): EdgeThread {
  return edgeThreadOn(startWorker('edge'), onFailure);
}

/** The authority's interface to the thread. */
export function edgeThreadOn(worker: Worker, onFailure: (cause: unknown) => void): EdgeThread {
  const ended = endOf(worker, onFailure);
  worker.on('message', (message: FromEdge) => {
    if (message.type === 'failed') onFailure(message.problem);
  });
  return {
    post: (message) => worker.postMessage(message),
    listen: (listener) => worker.on('message', listener),
    end() {
      worker.postMessage({ type: 'exit' } satisfies ToEdge);
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
  readonly viewers: Int32Array;
  readonly clock: ClockAnchor;
  readonly manualTime: ManualTime | null;
  readonly beats: Beats;
  /** Null if no other instance can become active. */
  readonly instanceStatus: InstanceStatusMemory | null;
  /** The folder of the sockets at which edges take what other instances forward; null if they forward nothing. */
  readonly socketFolder: string | null;
  /** Notes a document that the active instance has answered with. */
  copied(copy: Copy): void;
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
  announce(): Promise<void>;
  cut(): Promise<void>;
  /** Ends all connections, and the threads if there are any. */
  close(): Promise<void>;
  /** Stops answering and closes, without waiting longer than the time limit. */
  abandon(): Promise<void>;
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
  const shared: SharedState = {
    documentVersions: host.publisher.versions,
    revisionEnds: host.publisher.revisionEnds,
    viewers: host.viewers,
    clock: host.clock,
    manualTime: host.manualTime,
    beats: host.beats,
    instanceStatus: host.instanceStatus,
  };
  const edges = threads.map((thread) => connect(thread, host, reports));
  async function reports(): Promise<MetricsReport[]> {
    return Promise.all(edges.map((edge) => edge.call('report')));
  }
  async function onAll(
    name: 'announce' | 'drain' | 'cut' | 'close' | 'flush' | 'barrier',
  ): Promise<void> {
    await Promise.all(edges.map((edge) => edge.call(name)));
  }
  async function close(): Promise<void> {
    const ended = onAll('close').then(() => Promise.all(edges.map(({ end }) => end())));
    // A thread that does not close must not delay the end of the process.
    await Promise.race([ended, delay(CLOSING_MS, undefined, { ref: false })]);
  }

  const starts = edges.map((edge, index) =>
    edge.call('serve', {
      config,
      port,
      slot: index + 1,
      socketPath: socketIn(host, index + 1),
      shared,
    }),
  );
  const refused = (await Promise.allSettled(starts)).find(({ status }) => status === 'rejected');
  if (refused?.status === 'rejected') {
    await Promise.race([onAll('close'), delay(CLOSING_MS, undefined, { ref: false })]);
    throw refused.reason;
  }

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
      for (const edge of edges) void edge.call('useSessionSecret', secret);
    },
    forwardTo(active) {
      for (const edge of edges) void edge.call('forwardTo', active);
    },
    keepCopy(copy) {
      for (const edge of edges) void edge.call('keepCopy', copy);
    },
    settle: () => onAll('flush'),
    async barrier() {
      // Publications are sent at the end of this turn, and edges process messages in order.
      await new Promise(setImmediate);
      await onAll('barrier');
    },
  };
}

/** The socket of the edge in this slot. */
export function socketIn({ socketFolder }: Pick<EdgeHost, 'socketFolder'>, slot: number) {
  return socketFolder && join(socketFolder, String(slot));
}

interface ConnectedEdge {
  readonly call: RpcCaller<EdgeProcedures>['call'];
  /** No answer is sent after this. */
  silence(): void;
  end(): Promise<void>;
}

function connect(
  thread: EdgeThread,
  host: EdgeHost,
  reports: () => Promise<MetricsReport[]>,
): ConnectedEdge {
  const rpc = createRpcCaller<EdgeProcedures>(thread.post);
  const outbox = createOutbox(thread);
  const answering = { ...host, exposition: () => reports().then(host.exposition) };
  host.publisher.follow((publication) => outbox.publish(publication));

  thread.listen((message) => {
    if (message.type === 'batch') {
      if (message.log !== '') host.log(message.log);
      carryOut(message, answering, outbox);
    } else if (message.type === 'copy') host.copied(message.copy);
    else if (message.type !== 'failed') rpc.take(message);
  });

  return {
    call: rpc.call,
    silence: outbox.close,
    end() {
      outbox.close();
      return thread.end();
    },
  };
}
