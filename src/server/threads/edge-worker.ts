/**
 * An edge on its own thread: HTTP, parsing, schemas, signatures, public documents and stateless verification.
 * Everything it knows about the state comes from the authority.
 */
import { parentPort } from 'node:worker_threads';
import { anchoredTime } from '../../base/clock.ts';
import { createLogger } from '../../base/log/logger.ts';
import { problemText } from '../../base/log/problem.ts';
import { systemRuntime, timeOf, withClocks } from '../../base/runtime.ts';
import { createRequestQueue } from '../../edge/limits/request-queue.ts';
import { type AuthorityLink, createAuthorityLink } from './authority-link.ts';
import { createPulse, isAuthoritySilent, type Pulse } from './beats.ts';
import type { EdgeProcedures, FromEdge, Service, ToEdge } from './messages.ts';
import { answerCall } from './rpc.ts';
import { type ServingEdge, serveEdge } from './serving-edge.ts';

interface Serving {
  readonly link: AuthorityLink;
  readonly edge: ServingEdge;
  readonly pulse: Pulse;
}

const port = parentPort;
if (port === null) throw new Error('An edge runs as a worker thread');
let current: Serving | null = null;

const PROCEDURES: EdgeProcedures = {
  serve,
  announce: () => serving().edge.announce(),
  async drain() {
    const { edge, link } = serving();
    await edge.drain();
    link.flush();
  },
  cut: () => serving().edge.cut(),
  close() {
    // Ending the thread with an open app would abort the process.
    current?.edge.close();
    current?.pulse.end();
    current = null;
  },
  useTls: (files) => serving().edge.useTls(files),
  useSessionSecret: (secret) => current?.edge.useSessionSecret(secret),
  forwardTo: (active) => current?.edge.forwardTo(active),
  keepCopy: (copy) => current?.edge.keepCopy(copy),
  report: () => serving().edge.report(),
  flush: () => serving().link.flush(),
  barrier: () => serving().edge.barrier(),
};

// An uncaught exception would end the thread, and ending a thread with an open app aborts the process.
process.on('uncaughtException', (cause) => {
  current?.edge.refuseWork();
  post({ type: 'failed', problem: problemText(cause) });
});

port.on('message', (message: ToEdge) => {
  if (message.type === 'call') void answerCall(PROCEDURES, message, post);
  else if (message.type === 'exit') port.close();
  else current?.link.take(message);
});

function post(message: FromEdge): void {
  port?.postMessage(message);
}

function serving(): Serving {
  if (current === null) throw new Error('The edge is not serving');
  return current;
}

async function serve({ config, port: httpPort, slot, socketPath, shared }: Service): Promise<void> {
  const link = createAuthorityLink(post, shared, config.rateLimits);
  const runtime = withClocks(systemRuntime, timeOf(shared.manualTime), anchoredTime(shared.clock));
  const logger = createLogger({
    level: config.logLevel,
    format: config.logFormat,
    destination: { write: link.log },
    now: runtime.now,
  });
  const pulse = createPulse(shared.beats, slot);
  const edge = serveEdge(config, httpPort, {
    call: link.call,
    queue: createRequestQueue({
      longestWaitMs: config.longestWaitMs,
      elapsed: runtime.elapsed,
      schedule: setImmediate,
      progress: pulse.beat,
    }),
    documents: link.documents,
    revisionEnds: shared.revisionEnds,
    limits: link.limits,
    viewers: shared.viewers,
    runtime,
    logger,
    isAuthoritySilent: () => isAuthoritySilent(shared.beats),
    instanceStatus: shared.instanceStatus,
    socketPath,
    share: (copy) => post({ type: 'copy', copy }),
    exposition: link.exposition,
  });
  pulse.begin();
  current = { link, edge, pulse };
}
