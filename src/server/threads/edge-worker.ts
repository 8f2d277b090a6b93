/**
 * An edge on its own thread: HTTP, parsing, schemas, signatures, public documents and stateless verification.
 * Everything it knows about the state comes from the authority.
 */
import { parentPort } from 'node:worker_threads';
import { anchoredTime } from '../../base/clock.ts';
import { problemText } from '../../base/error-message.ts';
import { createLogger } from '../../base/log/logger.ts';
import { systemRuntime, timeOf, withClocks } from '../../base/runtime.ts';
import type { RateLimitSettings, RateLimits } from '../../edge/limits/rate-limit.ts';
import { createRequestQueue } from '../../edge/limits/request-queue.ts';
import type { Answer, Call, CallName, CallOf } from '../../protocol/contract/calls.ts';
import { createDocumentCache, type DocumentCache } from '../../protocol/contract/documents.ts';
import { createPulse, isAuthoritySilent, type Pulse } from './beats.ts';
import {
  type AuthorityProcedures,
  arrivedAnswer,
  type EdgeProcedures,
  heartbeatRow,
  type Service,
  toCloneable,
} from './crossing.ts';
import { createPeer, type Peer } from './rpc.ts';
import { type ServingEdge, serveEdge } from './serving-edge.ts';

interface Serving {
  readonly documents: DocumentCache;
  readonly edge: ServingEdge;
  readonly pulse: Pulse;
}

const port = parentPort;
if (port === null) throw new Error('An edge runs as a worker thread');
let current: Serving | null = null;

const PROCEDURES: EdgeProcedures = {
  serve,
  announce: () => serving().edge.announce(),
  drain: () => serving().edge.drain(),
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
  barrier: () => serving().edge.barrier(),
  publish: (publication) => current?.documents.take(publication),
  exit: () => port.close(),
};

const authority = createPeer<AuthorityProcedures>(port, PROCEDURES, { gathers: true });

// An uncaught exception would end the thread, and ending a thread with an open app aborts the process.
process.on('uncaughtException', (cause) => {
  current?.edge.refuseWork();
  authority.notify('failed', problemText(cause));
});

function serving(): Serving {
  if (current === null) throw new Error('The edge is not serving');
  return current;
}

function serve({ config, port: httpPort, slot, socketPath, shared }: Service): void {
  const documents = createDocumentCache(shared.documentVersions);
  const runtime = withClocks(systemRuntime, timeOf(shared.manualTime), anchoredTime(shared.clock));
  const logger = createLogger({
    ...config.log,
    destination: { write: (line) => authority.notify('log', line) },
    now: runtime.now,
  });
  const pulse = createPulse(shared.beats, slot);
  const edge = serveEdge(config, httpPort, {
    ...createAuthorityLink(authority, config.rateLimits),
    queue: createRequestQueue({
      longestWaitMs: config.longestWaitMs,
      elapsed: runtime.elapsed,
      schedule: setImmediate,
      progress: pulse.beat,
    }),
    documents,
    revisionEnds: shared.revisionEnds,
    viewers: shared.viewers,
    runtime,
    logger,
    isAuthoritySilent: () => isAuthoritySilent(shared.beats),
    instanceStatus: shared.instanceStatus,
    socketPath,
    share: (copy) => authority.notify('copied', copy),
    exposition: () => authority.call('exposition'),
  });
  pulse.begin();
  current = { documents, edge, pulse };
}

/** The authority, as seen from this thread. */
function createAuthorityLink(
  authority: Peer<AuthorityProcedures>,
  settings: RateLimitSettings,
): { readonly call: Call; readonly limits: RateLimits } {
  const isOn: RateLimits['isOn'] = (bucket) => settings[bucket] !== null;
  return {
    call<Name extends CallName>(name: Name, command: CallOf<Name>): Promise<Answer> {
      const crossing =
        name === 'heartbeat'
          ? authority.call('heartbeat', ...heartbeatRow(command as CallOf<'heartbeat'>))
          : authority.call('ask', name, toCloneable(command));
      return crossing.then(arrivedAnswer);
    },
    limits: {
      isOn,
      take: (bucket, key, now) =>
        isOn(bucket) ? authority.call('takeToken', bucket, key, now) : 0,
    },
  };
}
