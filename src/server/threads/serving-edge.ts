/** A serving edge, on the authority's thread or its own. */
import { createHeartbeatSessions } from '../../edge/auth/session.ts';
import { lastCopyReply } from '../../edge/documents/documents.ts';
import type { DrainState, Edge } from '../../edge/edge.ts';
import { type EdgeConfig, edgeSettings } from '../../edge/edge-config.ts';
import { createEventReaders } from '../../edge/event-readers.ts';
import type { CopyNotice } from '../../edge/forward/copies.ts';
import { createForwarder } from '../../edge/forward/forwarder.ts';
import { listen } from '../../edge/http/server.ts';
import { createUnprovenBodies } from '../../edge/limits/rate-limit.ts';
import type { RequestQueue } from '../../edge/limits/request-queue.ts';
import { createEdgeMetrics, type MetricsReport } from '../../edge/metrics.ts';
import { ROUTES } from '../../edge/routes/table.ts';
import { notFoundPages } from '../../pages/site/home.ts';
import { type Call, isQuestion } from '../../protocol/contract/calls.ts';
import {
  type InstanceStatusMemory,
  instanceStatusIn,
  noteAnswer,
} from '../../protocol/contract/instance-status.ts';
import type { EdgeProcedures } from './crossing.ts';

export interface ServingEdge extends Omit<EdgeProcedures, 'serve' | 'publish' | 'exit'> {
  readonly port: number;
  /** Refuses all new work. */
  refuseWork(): void;
}

/** The parts of an edge's environment that differ between threads. */
export interface ServingEdgeOptions
  extends Pick<
    Edge,
    'call' | 'queue' | 'documents' | 'revisionEnds' | 'limits' | 'viewers' | 'runtime' | 'logger'
  > {
  /** Whether the authority has not answered for so long that the process is not ready. */
  isAuthoritySilent(): boolean;
  /** Null if no other instance can become active. */
  readonly instanceStatus: InstanceStatusMemory | null;
  /** The socket at which this edge takes what other instances forward; null if they forward nothing. */
  readonly socketPath: string | null;
  /** Gives a copy of a document that another instance has answered with to all edges. */
  share(copy: CopyNotice): void;
  /** The metrics of all edges; `report` returns those of this one. */
  exposition(report: () => Promise<MetricsReport>): Promise<string>;
}

/**
 * What asks for something by name or filter goes on in a slice: the answers to many such calls may arrive at once, and
 * one request may make many.
 */
function inSlices(call: Call, queue: RequestQueue): Call {
  return (name, given) => {
    const answer = call(name, given);
    if (!isQuestion(name, given)) return answer;
    return Promise.resolve(answer).then((late) => queue.turn().then(() => late));
  };
}

export function serveEdge(
  config: EdgeConfig,
  port: number,
  { instanceStatus, exposition, socketPath, share, ...rest }: ServingEdgeOptions,
): ServingEdge {
  const metrics = createEdgeMetrics();
  const draining: DrainState = { isAnnounced: false, refusesWork: false };
  const settings = edgeSettings(config, rest.documents);
  const { runtime } = rest;
  const forwarder =
    instanceStatus &&
    createForwarder({
      holdMs: config.holdMs,
      socketPath,
      share,
      elapsed: runtime.elapsed,
      answered(milliseconds) {
        metrics.answered(milliseconds);
        noteAnswer(instanceStatus);
      },
    });
  const sessions = createHeartbeatSessions({ lastsMs: config.heartbeatSession, runtime });
  const edge: Edge = {
    ...rest,
    call: inSlices(rest.call, rest.queue),
    settings,
    sessions,
    unprovenBodies: createUnprovenBodies(),
    notFoundPage: notFoundPages(settings.genesis.network_name),
    eventReaders: createEventReaders({ ...config, ...rest, metrics }),
    metrics,
    exposition: () => exposition(metrics.report),
    instanceStatus: instanceStatus && instanceStatusIn(instanceStatus),
    forwarder,
    lastCopy: (request) => lastCopyReply(edge, request),
    startedAt: runtime.elapsed(),
    routes: ROUTES,
    draining,
  };
  const { host, tls } = config;
  const server = listen(edge, ROUTES, { host, port, tls, socketPath });
  return {
    ...stopsOf(server, draining),
    port: server.port,
    close() {
      forwarder?.close();
      server.close();
    },
    forwardTo: (active) => forwarder?.turnTo(active),
    keepCopy: (copy) => forwarder?.copies.take(copy),
    useTls: server.useTls,
    useSessionSecret: sessions.use,
    barrier: server.barrier,
    report: metrics.report,
  };
}

/** The steps of a stop, before connections are closed. */
function stopsOf(server: ReturnType<typeof listen>, draining: DrainState) {
  function refuseWork(): void {
    draining.refusesWork = true;
  }

  return {
    announce() {
      draining.isAnnounced = true;
    },
    refuseWork,
    drain() {
      refuseWork();
      return server.drain();
    },
    cut: server.dropUploads,
  };
}
